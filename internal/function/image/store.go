// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// folderVariable names another directory for images.
const folderVariable = "DRAY_IMAGES"

const defaultFolder = "/var/cache/dray/images"

// Folder is where images are kept.
func Folder() string {
	if dir := os.Getenv(folderVariable); dir != "" {
		return dir
	}
	return defaultFolder
}

// Image is a built image.
type Image struct {
	Name  string        `json:"name"`
	Key   string        `json:"key"`   // its inputs
	Suite string        `json:"suite"` // Debian's release
	Built time.Time     `json:"built"`
	Took  time.Duration `json:"took"` // ns
	Size  int64         `json:"size"` // of its files, bytes
	// Source identifies the sources that it was built from, and Results the other
	// inputs of that build; empty: its recipe has no sources.
	Source  string `json:"source,omitempty"`
	Results string `json:"results,omitempty"`

	Rootfs string `json:"-"` // its directory
}

const (
	rootName    = "rootfs"
	noteName    = "image.json"
	resultsName = "results" // what was built from sources
)

// Rootfs is the directory of an image's root file system, built or not.
func Rootfs(name string) string { return filepath.Join(Folder(), name, rootName) }

// Ready is the image if any recipe has built it; nil if not.
func Ready(name string) *Image {
	text, err := os.ReadFile(filepath.Join(Folder(), name, noteName))
	if err != nil {
		return nil
	}
	var i Image
	if json.Unmarshal(text, &i) != nil || i.Name != name {
		return nil
	}
	i.Rootfs = Rootfs(name)
	if info, err := os.Stat(i.Rootfs); err != nil || !info.IsDir() {
		return nil
	}
	return &i
}

// Current is the image if exactly this recipe has built it; nil if not. If the
// recipe's variable names sources, it was built from these; if not, from any.
func Current(r *Recipe) *Image {
	in, err := inputsOf(r)
	if err != nil {
		return nil
	}
	return in.current(r)
}

func (in *inputs) current(r *Recipe) *Image {
	if i := Ready(r.Name); i != nil && i.Key == in.key && (in.source == "" || in.source == i.Source) {
		return i
	}
	return nil
}

// Build returns the image of a recipe: the existing one, or a new one if there is
// none or afresh is set. Remains of killed builds are removed first. say receives
// progress.
func Build(ctx context.Context, r *Recipe, afresh bool, say func(string)) (*Image, error) {
	in, err := inputsOf(r)
	if err != nil {
		return nil, err
	}
	dir := Folder()
	// Functions in user namespaces, and apt's own user, need access.
	if err := host.MakeDirs(dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder of images: %w (%s names another)", err, folderVariable)
	}
	unlock, err := host.LockFile(ctx, filepath.Join(dir, r.Name+".lock"), unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := sweep(dir, r.Name); err != nil {
		return nil, err
	}
	if i := in.current(r); i != nil && !afresh {
		say(fmt.Sprintf("image %s: built on %s", r.Name, i.Built.Local().Format(time.DateTime)))
		return i, nil
	}
	if err := Missing(); err != nil {
		return nil, err
	}
	return build(ctx, r, in, afresh, say)
}

// Name prefixes of directories that only a build in progress has.
const making, replaced = ".making-", ".replaced-"

func build(ctx context.Context, r *Recipe, in *inputs, afresh bool, say func(string)) (i *Image, err error) {
	dir := Folder()
	from, err := hostSources(ctx)
	if err != nil {
		return nil, err
	}
	if r.Suite != "" && r.Suite != from.suite {
		return nil, &host.Unsupported{What: "the image " + r.Name, Why: "its packages are Debian " + r.Suite + "'s, and this is Debian " + from.suite, Fix: "build it on Debian " + r.Suite}
	}
	work, err := os.MkdirTemp(dir, making+r.Name+".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove(work)) }()
	if err := os.Chmod(work, 0o755); err != nil {
		return nil, err
	}
	say(fmt.Sprintf("image %s: installing Debian %s with %d packages on top of the base (about %v)", r.Name, from.suite, len(r.Packages), r.Takes))
	i = &Image{Name: r.Name, Key: in.key, Suite: from.suite, Built: time.Now(), Results: in.results}
	root, results := filepath.Join(work, rootName), ""
	if r.Source != nil {
		results = filepath.Join(work, resultsName)
		if i.Source, err = from.results(ctx, r, in, afresh, results, say); err != nil {
			return nil, fmt.Errorf("image %s: %w", r.Name, err)
		}
	}
	if err := from.make(ctx, r, results, root); err != nil {
		return nil, fmt.Errorf("image %s: %w", r.Name, err)
	}
	i.Took = time.Since(i.Built)
	if err := i.write(work); err != nil {
		return nil, err
	}
	target := filepath.Join(dir, r.Name)
	if err := place(work, target, filepath.Join(dir, replaced+filepath.Base(work))); err != nil {
		return nil, err
	}
	i.Rootfs = filepath.Join(target, rootName)
	say(fmt.Sprintf("image %s: %.1f MB in %s, after %.1f s", r.Name, float64(i.Size)/1e6, i.Rootfs, i.Took.Seconds()))
	return i, nil
}

// write measures the image in the directory, and writes its note there.
func (i *Image) write(dir string) (err error) {
	if i.Size, err = sizeOf(filepath.Join(dir, rootName)); err != nil {
		return err
	}
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, noteName), append(text, '\n'), 0o644)
}

// place replaces the old image with a complete one.
func place(work, target, aside string) error {
	err := os.Rename(target, aside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(work, target); err != nil {
		return err
	}
	return remove(aside)
}

// sweep removes the remains of an image's killed builds; the caller holds the
// image's lock.
func sweep(dir, name string) error {
	var all error
	for _, pattern := range []string{making + name + ".*", replaced + making + name + ".*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		all = errors.Join(all, err)
		for _, path := range found {
			all = errors.Join(all, remove(path))
		}
	}
	return all
}

// remove removes a tree into which processes of a killed build may still briefly
// write.
func remove(path string) (err error) {
	for range 100 {
		if err = os.RemoveAll(path); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// sizeOf sums the lengths of a tree's regular files, hard links once.
func sizeOf(root string) (sum int64, err error) {
	seen := map[uint64]bool{}
	err = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			if seen[s.Ino] {
				return nil
			}
			seen[s.Ino] = true
		}
		sum += info.Size()
		return nil
	})
	return sum, err
}

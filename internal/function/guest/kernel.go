// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// Flavour is one of Debian's kernels.
type Flavour string

// The kernel flavours that Debian packages.
const (
	Generic    Flavour = "generic"
	LowLatency Flavour = "lowlatency" // Generic with FullPreemption
	Realtime   Flavour = "rt"         // PREEMPT_RT
)

// FullPreemption on its command line makes Debian's generic kernel, which chooses when
// it boots (PREEMPT_DYNAMIC), as preemptible as a kernel without PREEMPT_RT gets.
const FullPreemption = "preempt=full"

// packaged is the flavour with a package of its own.
func (f Flavour) packaged() Flavour {
	if f == LowLatency || f == "" {
		return Generic
	}
	return f
}

// words are what the flavour needs on its command line.
func (f Flavour) words() []string {
	if f == LowLatency {
		return []string{FullPreemption}
	}
	return nil
}

// packageName is the package that depends on the flavour's newest kernel.
func (f Flavour) packageName() (string, error) {
	switch f.packaged() {
	case Generic:
		return "linux-image-amd64", nil
	case Realtime:
		return "linux-image-rt-amd64", nil
	}
	return "", fmt.Errorf("no kernel %q: write %s, %s or %s", f, Generic, LowLatency, Realtime)
}

// Kernel is a kernel that guests can boot.
type Kernel struct {
	Version string // as in uname -r
	Image   string // file
	Modules string // directory with the kernel/ and the modules.dep of that version
}

// cacheVariable names another directory for unpacked kernels.
const cacheVariable = "DRAY_GUEST_CACHE"

const defaultCache = "/var/cache/dray/guest"

func cacheDir() string {
	if dir := os.Getenv(cacheVariable); dir != "" {
		return dir
	}
	return defaultCache
}

// FindKernel returns the kernel of a flavour. The first time, it unpacks Debian's package,
// without installing it; after that no network is needed. An empty flavour is Generic. The
// error is a *host.Unsupported if no kernel is available.
func FindKernel(ctx context.Context, f Flavour) (Kernel, error) {
	name, err := f.packageName()
	if err != nil {
		return Kernel{}, err
	}
	dir := filepath.Join(cacheDir(), string(f.packaged()))
	if k, err := readKernel(dir); err == nil {
		return k, nil
	}
	if err := os.MkdirAll(cacheDir(), 0o755); err != nil {
		return Kernel{}, fmt.Errorf("folder for guests' kernels: %w (%s names another)", err, cacheVariable)
	}
	unlock, err := host.LockFile(ctx, dir+".lock", unix.LOCK_EX)
	if err != nil {
		return Kernel{}, err
	}
	defer unlock()
	if k, err := readKernel(dir); err == nil { // the lock's holder has made it
		return k, nil
	}
	if err := fetchKernel(ctx, name, dir); err != nil {
		return Kernel{}, notFetched(name, err)
	}
	return readKernel(dir)
}

// errNoKernel is an apt that knows no kernel.
var errNoKernel = errors.New("apt knows no kernel")

// notFetched is typed if a program is absent, or does not find the package.
func notFetched(name string, err error) error {
	what := "a guest with Debian's " + name
	var refused *exec.ExitError
	if !errors.Is(err, host.ErrUnsupported) && !errors.Is(err, errNoKernel) && !errors.As(err, &refused) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &host.Unsupported{
		What: what, Why: err.Error(), Cause: err,
		Fix: "apt-get update, and see that apt-cache policy " + name + " names a candidate; scripts/setup.sh test installs the programs",
	}
}

// readKernel examines an unpacked package.
func readKernel(dir string) (Kernel, error) {
	images, err := filepath.Glob(filepath.Join(dir, "boot/vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return Kernel{}, errors.Join(err, fmt.Errorf("%s: %d kernels", dir, len(images)))
	}
	version := strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	modules := filepath.Join(dir, "lib/modules", version)
	if _, err := os.Stat(filepath.Join(modules, "modules.dep")); err != nil {
		return Kernel{}, err
	}
	return Kernel{Version: version, Image: images[0], Modules: modules}, nil
}

// fetchKernel downloads and unpacks the package that a Debian metapackage stands
// for. A complete tree is moved into place in one step.
func fetchKernel(ctx context.Context, name, dir string) error {
	real, err := resolvePackage(ctx, name)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := command(ctx, work, "apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download", real); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(packages) != 1 {
		return errors.Join(err, fmt.Errorf("apt-get download %s left %d packages", real, len(packages)))
	}
	tree := filepath.Join(work, "tree")
	if err := command(ctx, work, "dpkg-deb", "--extract", packages[0], tree); err != nil {
		return err
	}
	// Debian 13 unpacks modules below /usr.
	if _, err := os.Stat(filepath.Join(tree, "lib/modules")); errors.Is(err, fs.ErrNotExist) {
		if err := os.Symlink("usr/lib", filepath.Join(tree, "lib")); err != nil {
			return err
		}
	}
	version := strings.TrimPrefix(real, "linux-image-")
	if err := command(ctx, work, "depmod", "--basedir", tree, version); err != nil {
		return err
	}
	if err := os.Chmod(tree, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // an unpacked package that is incomplete
		return err
	}
	return os.Rename(tree, dir)
}

// resolvePackage is the kernel package that name depends on.
func resolvePackage(ctx context.Context, name string) (string, error) {
	out, err := host.Helper{Program: "apt-cache", Args: []string{"depends", "--important", name}, Package: "apt"}.Output(ctx)
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(out, "\n") {
		if real, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok && strings.HasPrefix(real, "linux-image-") {
			return real, nil
		}
	}
	return "", fmt.Errorf("%w behind %s", errNoKernel, name)
}

// commandLimit bounds one step of getting a kernel, such as a download of 100 MB.
const commandLimit = 30 * time.Minute

// command runs a host program.
func command(ctx context.Context, dir, name string, args ...string) error {
	_, err := host.Helper{Program: name, Args: args, Dir: dir, Limit: commandLimit}.Run(ctx)
	return err
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// dirDamaged holds damaged files of chains that are removed. No chain has the name.
const dirDamaged = ".damaged"

// The bounds of what is there: files, and bytes of all.
const (
	mostDamaged      = 32
	mostDamagedBytes = 64 << 20
)

// setAside moves a damaged file of a chain out of its directory. If that fails, the removal of
// the chain goes on.
func (n *Node) setAside(name, file string, removal *Removal) {
	path := filepath.Join(n.dir(name), file)
	to, err := n.moveAside(path, name+"-"+file)
	if err != nil {
		removal.Lost = append(removal.Lost, fmt.Sprintf("%s: %v", path, err))
		return
	}
	removal.SetAside = append(removal.SetAside, to)
}

// moveAside moves what is at a path of the state directory to a name that says when. The oldest
// of too many are removed.
func (n *Node) moveAside(path, name string) (to string, err error) {
	dir := filepath.Join(n.StateDir, dirDamaged)
	if err := onlyDir(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to = filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000000")+"-"+name)
	if err := os.Rename(path, to); err != nil {
		return "", err
	}
	boundDamaged(dir, to)
	return to, nil
}

// boundDamaged removes the oldest of what is in a directory. Of the newest the beginning stays.
// What cannot be removed is tried again with the next file.
func boundDamaged(dir, newest string) {
	if info, err := os.Lstat(newest); err == nil && info.Mode().IsRegular() && info.Size() > mostDamagedBytes {
		_ = os.Truncate(newest, mostDamagedBytes)
	}
	entries, _ := os.ReadDir(dir) // by name, so by time
	slices.Reverse(entries)
	total := int64(0)
	for i, e := range entries {
		path := filepath.Join(dir, e.Name())
		total += diskUsage(path)
		if path != newest && (i >= mostDamaged || total > mostDamagedBytes) {
			_ = os.RemoveAll(path)
		}
	}
}

// diskUsage is what a file takes, or a directory with all in it, in bytes.
func diskUsage(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(path string, _ fs.DirEntry, _ error) error {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil { // what is gone takes nothing
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes
}

// onlyDir removes what is in the place of a directory: a pipe would be waited for, and a link
// followed.
func onlyDir(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || info.IsDir():
		return err
	}
	return os.Remove(path)
}

// damaged are the files of a chain's state that cannot be read.
func (n *Node) damaged(name string) []string {
	dir := n.dir(name)
	checks := map[string]func(path string) error{
		fileLock:      onlyRegular,
		fileJournal:   func(string) error { return n.checkJournal(name) },
		fileChain:     func(string) error { _, err := n.readChain(name); return err },
		fileState:     func(string) error { _, err := n.readState(name); return err },
		fileStatus:    func(path string) error { return readJSON(path, &Status{}) },
		fileProcesses: func(path string) error { return readJSON(path, &map[string]Revival{}) },
		fileBroker:    func(path string) error { return readJSON(path, &Broker{}) },
	}
	var bad []string
	for _, file := range []string{fileLock, fileJournal, fileChain, fileState, fileStatus, fileProcesses, fileBroker} {
		if err := checks[file](filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, file)
		}
	}
	return bad
}

func onlyRegular(path string) error {
	f, err := host.OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	return f.Close()
}

func (n *Node) checkJournal(name string) error {
	read, err := n.readJournal(name)
	if _, left := n.sortOut(name, read.Resources); err == nil && len(left) > 0 {
		return errors.New("it names what is not the chain's")
	}
	return errors.Join(err, read.Damage)
}

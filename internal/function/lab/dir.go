// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// labDir holds one directory for each lab guest.
const labDir = "/run/dray-lab"

// makeDir makes a directory for a guest. The next call removes directories of
// killed makers: their guests ended with them.
func makeDir() (dir string, remove func(), err error) {
	if err := os.MkdirAll(labDir, 0o700); err != nil {
		return "", nil, fmt.Errorf("folder of the lab's guests: %w (run as root)", err)
	}
	sweep()
	dir, err = os.MkdirTemp(labDir, "guest-")
	if err != nil {
		return "", nil, err
	}
	lock, err := takeLock(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() {
		_ = os.RemoveAll(dir) // the next call removes the rest
		lock.Close()
	}, nil
}

// takeLock locks a directory; the lock is free once its maker has ended.
func takeLock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := host.TryLock(f, unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func sweep() {
	dirs, err := filepath.Glob(filepath.Join(labDir, "guest-*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		// A directory just made has no lock yet, but it is empty.
		if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
			continue
		}
		lock, err := takeLock(dir)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir) // the next call retries
		lock.Close()
	}
}

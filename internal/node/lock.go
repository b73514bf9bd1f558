// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

var (
	// errBusy says that another process holds a lock.
	errBusy = errors.New("locked by another process")
	// errNoLock says that there is no lock file, and so no holder.
	errNoLock = errors.New("no lock file")
)

const (
	exclusive = unix.LOCK_EX
	shared    = unix.LOCK_SH // for readers: it excludes changes, not other readers
	// lockPatience is how long a writer waits for another, which may need minutes.
	lockPatience = time.Second
	// readerPatience is how long a writer waits for readers: they take longer than
	// an instant only if they get no CPU.
	readerPatience = 30 * time.Second
	lockPoll       = 5 * time.Millisecond
)

// tryLock locks an existing file without waiting. The kernel releases the lock when
// this process ends in any way.
func tryLock(path string, how int) (*os.File, error) {
	f, err := host.OpenRegular(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) || host.IsDamaged(err) {
		return nil, errNoLock
	}
	if err != nil {
		return nil, err
	}
	if err := host.TryLock(f, how); err != nil {
		f.Close()
		if errors.Is(err, host.ErrLocked) {
			return nil, errBusy
		}
		return nil, err
	}
	// The last holder may have removed it, and another process recreated it.
	if !stillAt(f, path) {
		f.Close()
		return nil, errBusy
	}
	return f, nil
}

func stillAt(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(held, now)
}

// waitLock is tryLock that waits for up to patience, for readers up to
// readerPatience, and no longer than ctx.
func waitLock(ctx context.Context, path string, how int, patience time.Duration) (*os.File, error) {
	for begin := time.Now(); ; {
		f, err := tryLock(path, how)
		if !errors.Is(err, errBusy) {
			return f, err
		}
		if waited := time.Since(begin); waited > patience && (waited > readerPatience || !readable(path)) {
			return nil, err
		}
		if err := host.Sleep(ctx, lockPoll); err != nil {
			return nil, err
		}
	}
}

// readable reports whether no writer holds the lock.
func readable(path string) bool {
	f, err := tryLock(path, shared)
	return err == nil && f.Close() == nil
}

// touch makes a lock file if it is missing.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// fileLocked is the lock of the state directory.
const fileLocked = ".lock"

// ownFile is the path of a file of the state directory itself. Anything that is not a
// regular file is moved away.
func (n *Node) ownFile(name string) (string, error) {
	path := filepath.Join(n.StateDir, name)
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() {
		return path, nil
	}
	_, err = n.moveAside(path, strings.TrimPrefix(name, "."))
	return path, err
}

// withRootLock calls f while no other `dray` claims or collects a chain.
func (n *Node) withRootLock(ctx context.Context, f func() error) error {
	if err := host.MakeStateDir(n.StateDir); err != nil {
		return err
	}
	path, err := n.ownFile(fileLocked)
	if err == nil {
		err = touch(path)
	}
	if err != nil {
		return fmt.Errorf("state directory: %w (run as root, or set DRAY_STATE)", err)
	}
	l, err := waitLock(ctx, path, exclusive, time.Hour)
	if err != nil {
		return err
	}
	defer l.Close()
	return f()
}

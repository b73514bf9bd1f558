// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errBusy says that another process holds a lock.
var errBusy = errors.New("locked by another process")

// lock takes an exclusive lock on a file, which is made if need be. The kernel
// releases it when this process ends, however it ends.
func lock(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	if err := flock(f, how); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errBusy
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// withRootLock calls f while no other `dray` claims or collects a chain.
func (n *Node) withRootLock(f func() error) error {
	if err := os.MkdirAll(n.StateDir, 0o711); err != nil {
		return fmt.Errorf("state directory: %w (run as root, or set DRAY_STATE)", err)
	}
	l, err := lock(filepath.Join(n.StateDir, ".lock"), true)
	if err != nil {
		return err
	}
	defer l.Close()
	return f()
}

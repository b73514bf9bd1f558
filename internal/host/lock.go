// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process, or another holder in this one, has a lock.
var ErrLocked = errors.New("another process holds the lock")

// lockPoll is the interval at which Lock retries: a context cannot interrupt a
// blocking flock(2).
const lockPoll = 10 * time.Millisecond

// LockFile locks a file (see Lock). It creates a missing file, for its user alone.
// It returns an error for a symbolic link.
func LockFile(ctx context.Context, path string, how int) (unlock func(), err error) {
	return lockFile(path, func(f *os.File) error { return Lock(ctx, f, how) })
}

// TryLockFile is LockFile without waiting: it returns ErrLocked instead.
func TryLockFile(path string, how int) (unlock func(), err error) {
	return lockFile(path, func(f *os.File) error { return TryLock(f, how) })
}

func lockFile(path string, lock func(*os.File) error) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// Lock locks an open file or directory until it is closed, with unix.LOCK_EX or
// unix.LOCK_SH. It waits for other holders until ctx ends, then returns ErrLocked.
func Lock(ctx context.Context, f *os.File, how int) error {
	for {
		err := TryLock(f, how)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		if ended := Sleep(ctx, lockPoll); ended != nil {
			return fmt.Errorf("%w (/proc/locks names it by the file's inode): %w", err, ended)
		}
	}
}

// TryLock is Lock without waiting.
func TryLock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			err = ErrLocked
		}
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
}

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

// lockPoll is how often Lock looks whether a lock is free: a blocking flock(2)
// would not end with a context.
const lockPoll = 10 * time.Millisecond

// LockFile locks a file, which it makes for its user alone if there is none, see
// Lock. A symbolic link is not followed: it is an error.
func LockFile(ctx context.Context, path string, how int) (unlock func(), err error) {
	return lockFile(path, func(f *os.File) error { return Lock(ctx, f, how) })
}

// TryLockFile is LockFile that does not wait: the error is ErrLocked then.
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

// Lock locks an open file or directory for as long as it is open, with unix.LOCK_EX
// or unix.LOCK_SH. It waits for others until ctx ends; the error is ErrLocked then.
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

// TryLock is Lock that does not wait.
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

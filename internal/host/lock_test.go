// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLockFileGivesUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := LockFile(ctx, path, unix.LOCK_SH)
	must(t, err)
	second, err := LockFile(ctx, path, unix.LOCK_SH)
	must(t, err)
	second()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = LockFile(short, path, unix.LOCK_EX)
	if !errors.Is(err, ErrLocked) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "/proc/locks") {
		t.Errorf("while another holds it: %v", err)
	}
	if _, err := TryLockFile(path, unix.LOCK_EX); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("while another holds it, without waiting: %v", err)
	}
	unlock()
	unlock, err = LockFile(ctx, path, unix.LOCK_EX)
	must(t, err)
	unlock()
	link := path + ".link"
	must(t, os.Symlink(path, link))
	if _, err := LockFile(ctx, link, unix.LOCK_EX); !errors.Is(err, unix.ELOOP) {
		t.Errorf("it follows a symbolic link: %v", err)
	}
}

// A directory locks like a file, and a waiter gets it.
func TestLockWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := os.Open(dir)
	must(t, err)
	must(t, TryLock(held, unix.LOCK_EX))
	other, err := os.Open(dir)
	must(t, err)
	defer other.Close()
	if err := TryLock(other, unix.LOCK_SH); !errors.Is(err, ErrLocked) {
		t.Errorf("while another holds it: %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- Lock(context.Background(), other, unix.LOCK_EX) }()
	must(t, held.Close())
	must(t, <-got)
}

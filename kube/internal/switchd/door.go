// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/meet"
)

const (
	// lookPause is the time between two looks at a door: less than it takes Open vSwitch to connect again.
	lookPause = 200 * time.Millisecond
	// faultPause follows a look that found a fault.
	faultPause = 2 * time.Second
)

// attend gives Open vSwitch the socket of each application that is shown at a door, one after the
// other, until ctx ends. It reports what is wrong, or "".
func attend(ctx context.Context, door, path string, report func(fault string)) {
	for {
		err := attendOne(ctx, door, path, report)
		if ctx.Err() != nil {
			return
		}
		pause := lookPause
		if err != nil {
			report(err.Error())
			pause = faultPause
		}
		if host.Sleep(ctx, pause) != nil {
			return
		}
	}
}

func attendOne(ctx context.Context, door, path string, report func(string)) error {
	shown, err := meet.Look(ctx, door)
	if err != nil {
		return err
	}
	defer func() { go shown.Close() }() // a pod can show something that blocks
	if err := checkSocket(shown.Socket); err != nil {
		return err
	}
	report("")
	// A program can only connect through this: it leads to no directory.
	if err := point(path, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), shown.Socket.Fd())); err != nil {
		return err
	}
	defer os.Remove(path) // before the descriptor's number can be another's
	shown.Gone(ctx)
	return nil
}

// checkSocket refuses what a pod shows if that is no socket.
func checkSocket(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return errors.New("the application's container shows something that is no socket")
	}
	return nil
}

// point makes path a symbolic link.
func point(path, to string) error {
	unfinished := path + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := os.Symlink(to, unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

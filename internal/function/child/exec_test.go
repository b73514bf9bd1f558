// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAwaitExecOfAZombie: a process without arguments may be about to execute the
// command, until it is gone.
func TestAwaitExecOfAZombie(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	err := unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err, _ = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil).(unix.Errno)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := AwaitExec(ctx, pid); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a zombie counts as the command: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := AwaitExec(context.Background(), pid); err != nil {
		t.Errorf("an ended process: %v", err)
	}
}

func TestIsRuncInit(t *testing.T) {
	for args, want := range map[string]bool{
		"runc\x00init\x00": true, "/usr/sbin/runc\x00init\x00": true,
		"": false, "sleep\x001000\x00": false, "runc\x00init\x00x\x00": false, "/bin/init\x00": false,
	} {
		if isRuncInit(args) != want {
			t.Errorf("%q: %v", args, !want)
		}
	}
}

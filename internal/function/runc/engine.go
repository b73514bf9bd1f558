// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/oci"
)

// engineError is why runc failed, according to its log.
func engineError(c oci.Container, function, program string) error {
	reason := c.LastError()
	if _, why, isCommand := strings.Cut(reason, "exec: "); isCommand && !strings.Contains(why, "fork/exec") {
		return &runtime.CommandError{Function: function, Command: program, Reason: why}
	}
	if reason == oci.NoLog {
		reason += ", and the function's own log has what it printed"
	}
	return fmt.Errorf("function %s: runc: %s", function, reason)
}

// awaitPID waits until runc (the child) has started the container's process and
// recorded its pid; ok is false if it ended first.
func awaitPID(ctx context.Context, container oci.Container, c *child.Child) (pid int, ok bool, err error) {
	const interval = 2 * time.Millisecond
	err = child.AwaitStart(ctx, "runc", func(ctx context.Context) error {
		for pid = container.PID(); pid == 0; pid = container.PID() {
			select {
			case <-c.Done():
				pid = container.PID()
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(interval):
			}
		}
		return nil
	})
	return pid, pid != 0, err
}

// killTree kills runc, if it still runs, and everything in the container's cgroup.
func killTree(c *child.Child, cgroup host.Cgroup) error {
	if err := unix.Kill(c.PID(), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return child.KillCgroup(cgroup)
}

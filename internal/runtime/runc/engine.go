// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/runtime"
	"github.com/drayage/dray/internal/runtime/child"
)

// writeConfig makes the bundle's directory and its config.json.
func (b bundle) writeConfig(config any) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	for _, stale := range []string{b.pidFile(), b.log()} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	content, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.config(), content, 0o600)
}

// command is a call of runc about this container.
func (b bundle) command(verb string, args ...string) *exec.Cmd {
	all := []string{"--root", b.state, "--log", b.log(), "--log-format", "json", verb}
	return exec.Command("runc", append(all, args...)...)
}

// engineError is why runc failed, from its log.
func (b bundle) engineError(function, program string) error {
	reason := b.lastError()
	if _, why, isCommand := strings.Cut(reason, "exec: "); isCommand && !strings.Contains(why, "fork/exec") {
		return &runtime.CommandError{Function: function, Command: program, Reason: why}
	}
	return fmt.Errorf("function %s: runc: %s", function, reason)
}

func (b bundle) lastError() string {
	f, err := os.Open(b.log())
	if err != nil {
		return "it left no log"
	}
	defer f.Close()
	reason := "its log holds no error"
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Level == "error" {
			reason = entry.Msg
		}
	}
	return reason
}

// pid is the host's id of the container's process; 0 before it has started.
func (b bundle) pid() int {
	content, err := os.ReadFile(b.pidFile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(content))
	if err != nil {
		return 0
	}
	return pid
}

// awaitPID waits until runc, which is the child, has started the container's
// process and noted its pid; ok is false if it ended without.
func (b bundle) awaitPID(ctx context.Context, c *child.Child) (pid int, ok bool, err error) {
	const interval = 2 * time.Millisecond
	for {
		select {
		case <-c.Done():
			pid := b.pid()
			return pid, pid != 0, nil
		case <-ctx.Done():
			return 0, false, ctx.Err()
		case <-time.After(interval):
			if pid := b.pid(); pid != 0 {
				return pid, true, nil
			}
		}
	}
}

// deleteStale removes what an instance left that ended while nobody watched.
func (b bundle) deleteStale(s runtime.Spec) error {
	if _, err := os.Stat(b.state + "/" + b.id); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	c, err := child.Start(host.Place{Cgroup: s.EngineCgroup()}, b.command("delete", "--force", b.id), nil)
	if err != nil {
		return err
	}
	code, err := c.Wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("runc delete: %s", b.lastError())
	}
	return err
}

// killTree kills runc, if it still runs, and everything in the container's cgroup.
func killTree(c *child.Child, cgroup host.Cgroup) error {
	if err := unix.Kill(c.PID(), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return child.KillCgroup(cgroup)
}

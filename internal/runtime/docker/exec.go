// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/runtime"
	"github.com/drayage/dray/internal/runtime/child"
)

// execMark is a variable in the environment of each program that Exec started:
// Docker does not tell its pid, and leaves it running when its client ends.
const execMark = "DRAY_EXEC"

// Exec implements runtime.Runtime. Where the function's command does not run,
// the program gets a container of its own in the sandbox.
func (r *Runtime) Exec(ctx context.Context, s runtime.Spec, argv []string, stdio runtime.Stdio) (int, error) {
	mark, err := newMark()
	if err != nil {
		return 0, err
	}
	name := containerName(s)
	st, err := r.state(ctx, name)
	var args []string
	if err == nil && st.pid != 0 {
		args = append(interactive("exec", stdio), "--env", execMark+"="+mark, name)
		args = append(args, argv...)
	} else {
		name += "-exec-" + mark
		flags, err := r.functionFlags(ctx, s, name, argv)
		if err != nil {
			return 0, fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
		args = append(append(interactive("run", stdio), "--rm"), flags...)
	}
	out, errs := &tail{to: stdio.Stdout}, &tail{to: stdio.Stderr}
	cmd := r.Client.Command(context.Background(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio.Stdin, out, errs
	c, err := child.Start(host.Place{Cgroup: clientCgroup(s)}, cmd, nil)
	if err != nil {
		return 0, fmt.Errorf("function %s: start docker: %w", s.Function.Name, err)
	}
	kill := func() error {
		killing := context.WithoutCancel(ctx)
		var err error
		if args[0] == "run" {
			err = r.removeContainer(killing, name)
		} else {
			err = r.killMarked(killing, name, mark)
		}
		return errors.Join(err, child.KillSession(c.PID()))
	}
	if err := c.End(ctx, kill); err != nil {
		return 0, err
	}
	code, err := c.Wait()
	if err == nil && (code == 126 || code == 127 || code == 125) {
		err = engineError(s.Function.Name, argv[0], out.last()+errs.last())
	}
	return code, err
}

func interactive(verb string, stdio runtime.Stdio) []string {
	if stdio.Stdin == nil {
		return []string{verb}
	}
	return []string{verb, "--interactive"}
}

// engineError is non-nil if the engine, and not the program, printed the text.
func engineError(function, program, text string) error {
	for _, prefix := range []string{"OCI runtime exec failed: ", "Error response from daemon: "} {
		if _, reason, ok := strings.Cut(text, prefix); ok {
			reason, _, _ = strings.Cut(reason, "\n")
			return startError(function, program, strings.TrimSuffix(strings.TrimSpace(reason), "."))
		}
	}
	return nil
}

// killMarked kills the processes of the container that carry the mark.
func (r *Runtime) killMarked(ctx context.Context, container, mark string) error {
	out, err := r.Client.Output(ctx, "top", container, "-eo", "pid")
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(out) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			continue // the heading
		}
		env, err := os.ReadFile("/proc/" + field + "/environ")
		if err != nil || !strings.Contains("\x00"+string(env), "\x00"+execMark+"="+mark+"\x00") {
			continue
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

func newMark() (string, error) {
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// tail passes output on and keeps its end.
type tail struct {
	to   io.Writer
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 4096
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - most; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	if t.to == nil {
		return len(p), nil
	}
	return t.to.Write(p)
}

func (t *tail) last() string { return string(t.kept) }

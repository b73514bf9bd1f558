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

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
)

// execMark is a variable in the environment of each program that Exec started:
// Docker does not report its pid, and leaves it running after its client ends.
const execMark = "DRAY_EXEC"

// GivesTerminals implements runtime.TerminalGiver: docker's client forwards its own
// terminal to the container's terminal.
func (*Runtime) GivesTerminals() {}

// terminalFlags request a terminal inside if there is one outside.
func terminalFlags(stdio runtime.Stdio) []string {
	if stdio.Terminal == nil {
		return nil
	}
	return []string{"--tty", "--env", "TERM=" + stdio.Terminal.Name}
}

// Exec implements runtime.Runtime. If the function's command is not running, the
// program gets its own container in the sandbox.
func (r *Runtime) Exec(ctx context.Context, s runtime.Spec, argv []string, stdio runtime.Stdio) (int, error) {
	mark, err := newMark()
	if err != nil {
		return 0, err
	}
	if st, err := r.state(ctx, containerName(s)); err == nil && st.pid != 0 {
		return r.execInside(ctx, s, mark, argv, stdio)
	}
	name := containerName(s) + "-exec-" + mark
	removing := context.WithoutCancel(ctx)
	defer func() { _ = r.removeContainer(removing, s, name) }() // else with the function's other containers
	c, _, err := r.runContainer(ctx, s, name, argv, stdio)
	if err != nil {
		return 0, err
	}
	return c.Finish(ctx, func() error { return r.removeContainer(removing, s, name) })
}

// execFlags are the options of docker exec. Of variables of one name the last counts: that is the
// mark, whatever the user's are.
func execFlags(s runtime.Spec, mark string, stdio runtime.Stdio) []string {
	args := append([]string{"exec"}, envFlags(s.Function.Env)...)
	args = append(append(args, terminalFlags(stdio)...), "--env", execMark+"="+mark)
	if stdio.Stdin != nil {
		args = append(args, "--interactive")
	}
	return args
}

// execInside runs the program in the container that runs the function's command.
func (r *Runtime) execInside(ctx context.Context, s runtime.Spec, mark string, argv []string, stdio runtime.Stdio) (int, error) {
	s, argv, err := s.Resolve(argv, true)
	if err != nil {
		return 0, err
	}
	args := append(append(execFlags(s, mark, stdio), containerName(s)), argv...)
	// The client mixes its own errors into the program's output.
	out, errs := &tail{to: stdio.Stdout}, &tail{to: stdio.Stderr}
	cmd := r.Client.Command(context.Background(), args...)
	stdio.Stdout, stdio.Stderr = out, errs
	c, err := child.StartWith(host.Place{Cgroup: clientCgroup(s)}, cmd, stdio, nil)
	if err != nil {
		return 0, fmt.Errorf("function %s: start docker: %w", s.Function.Name, err)
	}
	kill := func() error {
		err := r.killMarked(context.WithoutCancel(ctx), containerName(s), mark)
		return errors.Join(err, child.KillSession(c.PID()))
	}
	code, err := c.Finish(ctx, kill)
	if err == nil && code >= 125 && code <= 127 { // docker-exec(1): its own failures, or the program's status
		err = engineError(s.Function.Name, argv[0], out.last()+errs.last())
	}
	return code, err
}

// engineError is non-nil if the engine, not the program, printed the text.
func engineError(function, program, text string) error {
	for _, prefix := range []string{"OCI runtime exec failed: ", "Error response from daemon: "} {
		if _, reason, ok := strings.Cut(text, prefix); ok {
			reason, _, _ = strings.Cut(reason, "\n")
			return startError(function, program, strings.TrimSuffix(strings.TrimSpace(reason), "."))
		}
	}
	return nil
}

// killMarked kills the container's processes that carry the mark.
func (r *Runtime) killMarked(ctx context.Context, container, mark string) error {
	out, err := r.Client.Output(ctx, "top", container, "-eo", "pid")
	if dockercli.Ended(err) {
		return nil // and its processes with it
	}
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

// tail forwards output and keeps its end.
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

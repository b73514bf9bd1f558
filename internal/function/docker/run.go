// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/runtime"
)

// Start implements runtime.Runtime.
func (r *Runtime) Start(ctx context.Context, s runtime.Spec, out runtime.Output) (runtime.Instance, error) {
	if len(s.Function.Command) == 0 {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, runtime.ErrNothingToStart)
	}
	name := containerName(s)
	if err := r.removeContainer(ctx, s, name); err != nil {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	if err := s.ClearLinks(); err != nil {
		return nil, err
	}
	if err := s.RenewTuns(ctx, func(ctx context.Context) (int, error) { return r.commandUser(ctx, s) }); err != nil {
		return nil, err
	}
	c, st, err := r.runContainer(ctx, s, name, s.Function.Command, runtime.Stdio{Stdout: out.Stdout, Stderr: out.Stderr})
	if err != nil {
		return nil, err
	}
	// The child is the docker client, which waits for the container.
	var command *child.Instance
	command = c.Instance(st.pid, child.Terminate, func() error {
		command.ID().Signal(syscall.SIGKILL)
		return nil
	})
	return command, nil
}

// removeContainer removes one container of the function; a foreign container of
// that name stays.
func (r *Runtime) removeContainer(ctx context.Context, s runtime.Spec, name string) error {
	return removeLabelled(ctx, r.Client, s.Cgroup, "name=^/"+regexp.QuoteMeta(name)+"$")
}

// state is a container's state as the daemon reports it.
type state struct {
	started bool
	pid     int // 0 after it ended
	reason  string
}

func (r *Runtime) state(ctx context.Context, name string) (state, error) {
	out, err := r.Client.Output(ctx, "container", "inspect", "--format", "{{.State.Pid}} {{.State.StartedAt}} {{.State.Error}}", name)
	if err != nil {
		return state{}, err
	}
	fields := strings.SplitN(out, " ", 3)
	if len(fields) < 2 {
		return state{}, fmt.Errorf("docker inspect: %q", out)
	}
	var st state
	if _, err := fmt.Sscan(fields[0], &st.pid); err != nil {
		return state{}, fmt.Errorf("docker inspect: %q: %w", out, err)
	}
	st.started = !strings.HasPrefix(fields[1], "0001-") // Go's zero time
	if len(fields) == 3 {
		st.reason = fields[2]
	}
	return st, nil
}

// awaitStarted waits until the container has started, or the client that starts
// it has ended.
func (r *Runtime) awaitStarted(ctx context.Context, name string, c *child.Child) (state, error) {
	const interval = 10 * time.Millisecond
	var st state
	err := child.AwaitStart(ctx, "the docker client or its daemon at "+r.Client.Host, func(ctx context.Context) error {
		for {
			ended := false
			select {
			case <-c.Done():
				ended = true
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(interval):
			}
			var err error
			if st, err = r.state(ctx, name); err != nil || st.started || ended {
				return err
			}
		}
	})
	return st, err
}

// startError distinguishes a command that cannot run from other failures, by the
// engine's reason: `OCI runtime create failed: … exec: "x": … not found …`.
func startError(function, program, reason string) error {
	if _, why, ok := strings.Cut(reason, "exec: "); ok {
		return &runtime.CommandError{Function: function, Command: program, Reason: strings.TrimSuffix(why, ": unknown")}
	}
	if reason == "" {
		reason = "the container did not start"
	}
	return fmt.Errorf("function %s: docker: %s", function, reason)
}

// SPDX-License-Identifier: Apache-2.0

// Package dockercli calls the docker client program, always with an explicit
// daemon, so that a user's contexts do not matter.
package dockercli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// DefaultHost is where Debian's docker daemon listens.
const DefaultHost = "unix:///run/docker.sock"

// outputGrace is how long a child of the client, such as a credential helper, may
// hold its output after the client ended or was killed.
var outputGrace = 10 * time.Second

// Client calls one daemon.
type Client struct {
	Host string // "unix:///path"
}

// FromEnvironment is the daemon that DOCKER_HOST names, or the default one.
func FromEnvironment() Client {
	if h := os.Getenv("DOCKER_HOST"); h != "" {
		return Client{Host: h}
	}
	return Client{Host: DefaultHost}
}

// Error is a docker command that failed.
type Error struct {
	Verb   string
	Stderr string
	Err    error
}

func (e *Error) Error() string {
	text := strings.TrimSpace(e.Stderr)
	if text == "" {
		text = e.Err.Error()
	}
	return "docker " + e.Verb + ": " + text
}

// Unwrap returns the client process's error.
func (e *Error) Unwrap() error { return e.Err }

// NotFound reports whether the daemon knows no such container or image.
func (e *Error) NotFound() bool { return strings.Contains(strings.ToLower(e.Stderr), "no such") }

// Ended reports whether the container does not run, or no longer exists.
func (e *Error) Ended() bool { return e.NotFound() || strings.Contains(e.Stderr, "is not running") }

// Command is a client call that has not been started.
func (c Client) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", append([]string{"--host", c.Host}, args...)...)
	slog.DebugContext(ctx, "run", "argv", cmd.Args)
	return cmd
}

// Output runs a command and returns its trimmed output. A failure is an *Error.
func (c Client) Output(ctx context.Context, args ...string) (string, error) {
	cmd := c.Command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	// A terminal's SIGINT is for dray, whose clean-up needs its client.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", &Error{Verb: args[0], Stderr: errs.String(), Err: err}
	}
	return strings.TrimSpace(out.String()), nil
}

// SocketGone reports whether the daemon's socket is missing: its containers can
// no longer be queried.
func (c Client) SocketGone() bool {
	path, isUnix := strings.CutPrefix(c.Host, "unix://")
	if !isUnix {
		return false
	}
	_, err := os.Stat(path)
	return os.IsNotExist(err)
}

// PID is the first process of a running container.
func (c Client) PID(ctx context.Context, container string) (int, error) {
	out, err := c.Output(ctx, "container", "inspect", "--format", "{{.State.Pid}}", "--", container)
	if err != nil {
		return 0, err
	}
	var pid int
	if _, err := fmt.Sscan(out, &pid); err != nil {
		return 0, fmt.Errorf("docker container %s: pid %q: %w", container, out, err)
	}
	if pid == 0 {
		return 0, fmt.Errorf("docker container %s is not running: docker start %s", container, container)
	}
	return pid, nil
}

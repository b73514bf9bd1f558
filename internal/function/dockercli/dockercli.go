// SPDX-License-Identifier: Apache-2.0

// Package dockercli calls the docker client program, always with an explicit
// daemon, so that a user's contexts do not matter.
package dockercli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
)

// DefaultHost is where Debian's docker daemon listens.
const DefaultHost = "unix:///run/docker.sock"

// The docker client, and how to get it.
const (
	program = "docker"
	Package = "docker.io (on Debian 13 also docker-cli)"
)

// AnswerLimit bounds how long the daemon may take to answer.
var AnswerLimit = 20 * time.Second

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
	if text == "" || errors.Is(e.Err, context.DeadlineExceeded) {
		text = e.Err.Error()
	}
	return "docker " + e.Verb + ": " + text
}

// Unwrap returns the client process's error.
func (e *Error) Unwrap() error { return e.Err }

// NotFound reports whether the daemon knows no such container or image.
func (e *Error) NotFound() bool { return noSuch.MatchString(e.Stderr) }

// noSuch is how the daemon says it. A missing socket is "no such file or directory".
var noSuch = regexp.MustCompile(`(?i)no such (container|image|object)`)

// Ended reports whether an error says that the container does not run, or no longer exists.
func Ended(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.NotFound() || strings.Contains(e.Stderr, "is not running"))
}

// NoDaemon reports whether nothing listens at the daemon's address.
func (e *Error) NoDaemon() bool {
	return strings.Contains(e.Stderr, "Cannot connect to the Docker daemon") ||
		strings.Contains(e.Stderr, "failed to connect to the docker API") // since version 28
}

// Command is a client call that has not been started.
func (c Client) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, c.arguments(args)...)
	slog.DebugContext(ctx, "run", "argv", cmd.Args)
	return cmd
}

func (c Client) arguments(args []string) []string { return append([]string{"--host", c.Host}, args...) }

// Output runs a command that the daemon answers at once, and returns its trimmed output. A
// failure is an *Error.
func (c Client) Output(ctx context.Context, args ...string) (string, error) {
	answer, err := host.Helper{Program: program, Args: c.arguments(args), Package: Package, Limit: AnswerLimit}.Run(ctx)
	switch {
	case err == nil:
		return strings.TrimSpace(answer.Out), nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = c.Hangs(AnswerLimit)
	}
	return "", &Error{Verb: args[0], Stderr: answer.Err, Err: err}
}

// Hangs is the error of a daemon that has not answered for so long.
func (c Client) Hangs(limit time.Duration) error {
	return host.Fault{
		Why: fmt.Sprintf("the daemon at %s does not answer within %v", c.Host, limit), Fix: "restart it, or set DOCKER_HOST to another", Cause: context.DeadlineExceeded,
	}
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
		return 0, &Error{Verb: "container inspect", Stderr: fmt.Sprintf("container %s is not running: docker start %[1]s", container)}
	}
	return pid, nil
}

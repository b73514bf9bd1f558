// SPDX-License-Identifier: Apache-2.0

// Package child supervises the host process that represents a running command:
// the command itself, or the engine's process that waits for it.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// Child is a process that was started and is being waited for.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	code int
	err  error

	mu     sync.Mutex
	killed error // why End killed the process itself; nil: it did not
}

// outputGrace is how long a process that escaped its cgroup may hold open the
// output of an ended command.
const outputGrace = 30 * time.Second

// killPatience bounds how long killed processes may take to die: only one stuck
// in the kernel takes this long.
const killPatience = 20 * time.Second

// endPatience bounds how long an engine process may outlive the command that it
// represents. After that it hangs, and is killed as well.
var endPatience = 30 * time.Second

// Start starts cmd in place. atExit, which may be nil, runs after the process
// ends and before its output counts as complete: it must end anything else that
// may hold the output open.
func Start(place host.Place, cmd *exec.Cmd, atExit func() error) (*Child, error) {
	return start(place, cmd, atExit, func() {})
}

// start is Start plus finish, which completes the output of the ended process.
func start(place host.Place, cmd *exec.Cmd, atExit func() error, finish func()) (*Child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A terminal's SIGINT is for dray, which then stops functions in order.
	cmd.SysProcAttr.Setsid = true
	cmd.WaitDelay = outputGrace
	feed, err := detachStdin(cmd)
	if err != nil {
		return nil, err
	}
	if err := place.Start(cmd); err != nil {
		return nil, err
	}
	go feed()
	c := &Child{cmd: cmd, done: make(chan struct{})}
	go c.wait(atExit, finish)
	return c, nil
}

// detachStdin lets the process end while its input, such as a terminal, is still
// open: exec.Cmd would wait for it.
func detachStdin(cmd *exec.Cmd) (feed func(), err error) {
	in := cmd.Stdin
	if _, isFile := in.(*os.File); in == nil || isFile {
		return func() {}, nil
	}
	cmd.Stdin = nil
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() {
		_, _ = io.Copy(pipe, in) // it fails when the process has ended
		pipe.Close()
	}, nil
}

func (c *Child) wait(atExit func() error, finish func()) {
	defer close(c.done)
	// WNOWAIT leaves the zombie, so its pid cannot be reused before atExit returns.
	for {
		err := unix.Waitid(unix.P_PID, c.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if atExit != nil {
		c.err = atExit()
	}
	err := c.cmd.Wait()
	finish()
	if c.cmd.ProcessState != nil {
		c.code = exitStatus(c.cmd.ProcessState.Sys().(syscall.WaitStatus))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.err = errors.Join(c.err, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, c.killed)
}

// PID is the process's id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process has been reaped and its output is complete.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait returns the exit status, 128+n for signal n.
func (c *Child) Wait() (int, error) {
	<-c.done
	return c.code, c.err
}

// End waits for the process to end. If ctx ends first it calls kill and waits
// again. A process that still hangs is killed, and End and Wait return an error.
func (c *Child) End(ctx context.Context, kill func() error) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	failed := kill()
	select {
	case <-c.done:
		return errors.Join(failed, c.err)
	case <-time.After(endPatience):
	}
	c.mu.Lock()
	c.killed = fmt.Errorf("%s (process %d) did not end within %v of being stopped, and was killed", filepath.Base(c.cmd.Path), c.PID(), endPatience)
	c.mu.Unlock()
	failed = errors.Join(failed, KillSession(c.PID()))
	select {
	case <-c.done:
		return errors.Join(failed, c.err)
	case <-time.After(killPatience):
		return errors.Join(failed, fmt.Errorf("%s (process %d) does not die of SIGKILL", filepath.Base(c.cmd.Path), c.PID()))
	}
}

// startLimit bounds the time that an engine may take to start a program. It takes seconds, and far
// longer on a busy machine.
var startLimit = 2 * time.Minute

// AwaitStart calls await, which waits until the engine has started a program, or ctx ends. An
// engine that hangs is given up.
func AwaitStart(ctx context.Context, engine string, await func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := await(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return host.Fault{Why: fmt.Sprintf("%s hangs: it has not started the program within %v", engine, startLimit), Cause: context.DeadlineExceeded}
	}
	return err
}

// KillSession kills the sessions that these processes lead. A session that has
// ended is no error.
func KillSession(leaders ...int) error {
	var errs []error
	for _, pid := range leaders {
		if pid <= 0 {
			continue
		}
		if err := unix.Kill(-pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// KillCgroup kills every process in the cgroup.
func KillCgroup(c host.Cgroup) error {
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	return c.Kill(ctx)
}

// exitStatus is the status as a shell reports it.
func exitStatus(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
)

// StartWith is Start with the process's input and output, optionally through a
// terminal of its own.
func StartWith(place host.Place, cmd *exec.Cmd, stdio runtime.Stdio, atExit func() error) (*Child, error) {
	return startWith(place, cmd, stdio, atExit, func(*host.Pty) error { return nil })
}

// StartForwarder is StartWith for runc, which forwards its terminal to the program's own.
// It shows output before it sets its terminal to pass all keys: an early Ctrl-C would
// interrupt runc, and not the program. So the terminal passes them from the start.
func StartForwarder(place host.Place, cmd *exec.Cmd, stdio runtime.Stdio, atExit func() error) (*Child, error) {
	return startWith(place, cmd, stdio, atExit, (*host.Pty).PassKeys)
}

func startWith(place host.Place, cmd *exec.Cmd, stdio runtime.Stdio, atExit func() error, set func(*host.Pty) error) (*Child, error) {
	if stdio.Terminal == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio.Stdin, stdio.Stdout, stdio.Stderr
		return Start(place, cmd, atExit)
	}
	pty, err := host.OpenPty(stdio.Terminal.Size.Columns, stdio.Terminal.Size.Rows)
	if err != nil {
		return nil, err
	}
	if err := set(pty); err != nil {
		return nil, errors.Join(fmt.Errorf("set a terminal: %w", err), pty.Slave.Close(), pty.Master.Close())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pty.Slave, pty.Slave, pty.Slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setctty: true, Ctty: 0}
	shown := make(chan struct{})
	c, err := start(place, cmd, atExit, func() {
		// A process that escaped may hold the terminal.
		_ = pty.Master.SetReadDeadline(time.Now().Add(outputGrace))
		<-shown
		pty.Master.Close()
	})
	pty.Slave.Close()
	if err != nil {
		pty.Master.Close()
		return nil, err
	}
	go func() {
		defer close(shown)
		_, _ = io.Copy(stdio.Stdout, pty.Master) // it fails once the terminal has no process left
	}()
	go func() { _, _ = io.Copy(pty.Master, stdio.Stdin) }()
	go func() {
		for {
			select {
			case size := <-stdio.Terminal.Resized:
				_ = pty.Resize(size.Columns, size.Rows)
			case <-c.done:
				return
			}
		}
	}()
	return c, nil
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// PipeReader reads a pipe whose writers may be hostile. They wake this process only
// while Wait runs. The Go runtime would wake up for each of their writes, because it
// watches every file that it can poll.
type PipeReader struct {
	fd    int
	epoll *os.File // watches fd until its next event
}

// NewPipeReader takes over the reading end of a pipe and makes it non-blocking.
func NewPipeReader(fd int) (*PipeReader, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{})
	// This tells os.NewFile that the runtime may poll it.
	if err = errors.Join(err, unix.SetNonblock(epoll, true)); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), unix.Close(epoll))
	}
	return &PipeReader{fd: fd, epoll: os.NewFile(uintptr(epoll), "epoll")}, nil
}

// Wait returns when there is something to read, or no writer is left. Interrupt makes
// it return an error.
func (p *PipeReader) Wait() error {
	raw, err := p.epoll.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(epoll uintptr) {
		failed = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, p.fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return raw.Read(func(epoll uintptr) bool { return ready(int(epoll)) })
}

// ready reports whether the pipe has had its event. After that, epoll ignores the pipe.
func ready(epoll int) bool {
	var event [1]unix.EpollEvent
	n, err := unix.EpollWait(epoll, event[:], 0)
	return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
}

// Interrupt makes the current and all later calls of Wait fail.
func (p *PipeReader) Interrupt() { _ = p.epoll.SetReadDeadline(time.Unix(1, 0)) }

// Read reads what is in the pipe, without waiting: EAGAIN if it is empty, and 0 if it
// is empty and no writer is left.
func (p *PipeReader) Read(b []byte) (int, error) {
	for {
		if n, err := unix.Read(p.fd, b); !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// Pending is how many bytes are in the pipe.
func (p *PipeReader) Pending() int {
	n, err := unix.IoctlGetInt(p.fd, unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

// Duplicate is another descriptor of the reading end. Close it early: the runtime
// watches it.
func (p *PipeReader) Duplicate() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pipe"), nil
}

// Close closes the pipe. No other call may be running.
func (p *PipeReader) Close() {
	p.epoll.Close()
	_ = unix.Close(p.fd)
}

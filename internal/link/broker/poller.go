// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for descriptors, a deadline, or a poke. The Go runtime polls
// its epoll instance, so an idle link costs one sleeping goroutine and no
// thread.
type poller struct {
	file    *os.File
	sources map[uint64]*source
	last    uint64

	mu    sync.Mutex
	poked bool
}

// source is a descriptor to wait for. Its number is never reused, so an event
// cannot reach the next owner of a closed descriptor's number.
type source struct {
	id    uint64
	fd    int
	late  bool // served after the other sources
	ready func()
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// This tells os.NewFile that the runtime may poll it.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), unix.Close(fd))
	}
	return &poller{file: os.NewFile(uintptr(fd), "epoll"), sources: map[uint64]*source{}}, nil
}

// add waits for input or hang-up on fd.
func (p *poller) add(fd int, late bool, ready func()) (*source, error) {
	p.last++
	s := &source{id: p.last, fd: fd, late: late, ready: ready}
	if err := p.control(unix.EPOLL_CTL_ADD, s, unix.EPOLLIN|unix.EPOLLRDHUP); err != nil {
		return nil, err
	}
	p.sources[s.id] = s
	return s, nil
}

// mute and unmute disable and enable a source's events.
func (p *poller) mute(s *source) error   { return p.control(unix.EPOLL_CTL_MOD, s, 0) }
func (p *poller) unmute(s *source) error { return p.control(unix.EPOLL_CTL_MOD, s, unix.EPOLLIN) }

// close closes a source's descriptor. A nil source is ignored.
func (p *poller) close(s *source) {
	if s != nil {
		delete(p.sources, s.id)
		_ = unix.Close(s.fd)
	}
}

// release stops waiting for a source, and returns its descriptor, which stays open.
func (p *poller) release(s *source) int {
	delete(p.sources, s.id)
	_ = p.control(unix.EPOLL_CTL_DEL, s, 0)
	return s.fd
}

func (p *poller) control(op int, s *source, events uint32) error {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	event := unix.EpollEvent{Events: events, Fd: int32(s.id), Pad: int32(s.id >> 32)}
	var failed error
	err = conn.Control(func(epoll uintptr) { failed = unix.EpollCtl(int(epoll), op, s.fd, &event) })
	return errors.Join(err, failed)
}

// poke makes the current or next wait return immediately. Any goroutine may call it.
func (p *poller) poke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.poked = true
	_ = p.file.SetReadDeadline(time.Unix(1, 0))
}

// arm sets the deadline of the next wait; zero: none.
func (p *poller) arm(deadline time.Time) (poked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.poked {
		p.poked = false
		return true
	}
	_ = p.file.SetReadDeadline(deadline)
	return false
}

// serve waits, and serves the sources that are ready: all that were so at the returned
// time. A deadline that has passed by then ends only the wait, because the messages may have
// come before it, while this process had no CPU.
func (p *poller) serve(deadline time.Time) (served time.Time, err error) {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return served, err
	}
	events := make([]unix.EpollEvent, len(p.sources)+1)
	n := 0
	var failed error
	look := func(epoll uintptr) bool {
		n, failed = unix.EpollWait(int(epoll), events, 0)
		for errors.Is(failed, unix.EINTR) {
			n, failed = unix.EpollWait(int(epoll), events, 0)
		}
		return n > 0 || failed != nil
	}
	if !p.arm(deadline) {
		if err := conn.Read(look); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return served, fmt.Errorf("wait: %w", err)
		}
	}
	served = time.Now()
	err = conn.Control(func(epoll uintptr) { look(epoll) })
	if err := errors.Join(err, failed); err != nil {
		return served, fmt.Errorf("wait: %w", err)
	}
	p.dispatch(events[:n])
	return served, nil
}

// dispatch serves late sources last: dead ends are removed before new ends connect.
func (p *poller) dispatch(events []unix.EpollEvent) {
	for _, late := range []bool{false, true} {
		for _, e := range events {
			s := p.sources[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]
			if s != nil && s.late == late {
				s.ready()
			}
		}
	}
}

// end closes the poller and every source.
func (p *poller) end() {
	for _, s := range p.sources {
		p.close(s)
	}
	_ = p.file.Close()
}

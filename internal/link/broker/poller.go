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

// poller waits for descriptors, a deadline, or a poke. It holds an epoll
// instance, which the runtime itself polls: a link that has nothing to do costs
// one sleeping goroutine and no thread.
type poller struct {
	file    *os.File
	sources map[uint64]*source
	last    uint64

	mu    sync.Mutex
	poked bool
}

// source is a descriptor that is waited for. Its number is never used twice, so
// that an event cannot reach whoever got a closed descriptor's number.
type source struct {
	id    uint64
	fd    int
	late  bool // served after those that are not
	ready func()
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// Tells os.NewFile that the runtime may poll it.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), unix.Close(fd))
	}
	return &poller{file: os.NewFile(uintptr(fd), "epoll"), sources: map[uint64]*source{}}, nil
}

// add waits for input on fd, or its end.
func (p *poller) add(fd int, late bool, ready func()) (*source, error) {
	p.last++
	s := &source{id: p.last, fd: fd, late: late, ready: ready}
	if err := p.control(unix.EPOLL_CTL_ADD, s, unix.EPOLLIN|unix.EPOLLRDHUP); err != nil {
		return nil, err
	}
	p.sources[s.id] = s
	return s, nil
}

// mute and unmute stop and resume events of a source.
func (p *poller) mute(s *source) error   { return p.control(unix.EPOLL_CTL_MOD, s, 0) }
func (p *poller) unmute(s *source) error { return p.control(unix.EPOLL_CTL_MOD, s, unix.EPOLLIN) }

// close closes a source's descriptor. A nil source is none.
func (p *poller) close(s *source) {
	if s != nil {
		delete(p.sources, s.id)
		_ = unix.Close(s.fd)
	}
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

// poke makes the present or the next wait return at once. It may be called by any goroutine.
func (p *poller) poke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.poked = true
	_ = p.file.SetReadDeadline(time.Unix(1, 0))
}

// arm sets when the next wait ends at the latest; the zero time is never.
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

// serve waits, and serves the sources that are ready.
func (p *poller) serve(deadline time.Time) error {
	poked := p.arm(deadline)
	conn, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	var events [16]unix.EpollEvent
	n := 0
	var failed error
	look := func(epoll uintptr) bool {
		n, failed = unix.EpollWait(int(epoll), events[:], 0)
		if errors.Is(failed, unix.EINTR) {
			n, failed = 0, nil
		}
		return n > 0 || failed != nil
	}
	if poked {
		err = conn.Control(func(epoll uintptr) { look(epoll) })
	} else {
		err = conn.Read(look)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	p.dispatch(events[:n])
	return nil
}

// dispatch serves late sources last: who takes the place of a dead end finds it empty.
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

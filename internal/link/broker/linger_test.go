// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// deaf accepts connections, and never reads from them.
type deaf struct {
	t        testing.TB
	listener int
	address  unix.Sockaddr
	accepted []int
}

func newDeaf(t testing.TB) *deaf {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := &deaf{t: t, listener: fd}
	t.Cleanup(d.end)
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4096),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 8))
	if err == nil {
		d.address, err = unix.Getsockname(fd)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// end resets the connections, so that closing them no longer waits.
func (d *deaf) end() {
	closeFDs(append(d.accepted, d.listener))
	d.accepted, d.listener = nil, -1
}

// socket returns a TCP socket with unsent data. The process that closes it last waits a minute.
func (d *deaf) socket() int {
	d.t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 64<<10), unix.Connect(fd, d.address), unix.SetNonblock(fd, true))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	accepted, _, err := unix.Accept4(d.listener, unix.SOCK_CLOEXEC)
	if err != nil {
		d.t.Fatal(err)
	}
	d.accepted = append(d.accepted, accepted)
	for b := make([]byte, 64<<10); ; {
		if _, err := unix.Write(fd, b); errors.Is(err, unix.EAGAIN) {
			break
		} else if err != nil {
			d.t.Fatal(err)
		}
	}
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 60}); err != nil {
		d.t.Fatal(err)
	}
	return fd
}

// give sends a message with a new socket, and more; the kernel may refuse it. The process
// that closes them last waits, so they are closed here at once. If the broker was quicker,
// this call waits, until the connections are reset.
func (d *deaf) give(r *raw, m wire.Message, more ...int) {
	fds := append(more, d.socket())
	accepted := d.accepted[len(d.accepted)-len(fds):]
	_ = r.send(m.Marshal(), fds...)
	waiting := time.AfterFunc(100*time.Millisecond, func() { reset(accepted) })
	closeFDs(fds)
	waiting.Stop()
}

// reset ends TCP connections, so that closing their other ends does not wait.
func reset(fds []int) {
	for _, fd := range fds {
		unspecified := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		_, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspecified)), unsafe.Sizeof(unspecified))
	}
}

// TestSocketsThatWaitInClose sends an end's socket descriptors that block close, in every
// way there is. The other end and the operator must not notice.
func TestSocketsThatWaitInClose(t *testing.T) {
	attach := func(r *raw, d *deaf, m wire.Message, n int) {
		for range n {
			d.give(r, m)
		}
	}
	for _, tc := range []struct {
		name   string
		attack func(s *fixture, l broker.Link, d *deaf)
	}{
		{"with HELLO", func(s *fixture, l broker.Link, d *deaf) {
			r := s.raw(l.Ends[0])
			attach(r, d, r.helloMessage(nil), 1)
		}},
		{"as memory", func(s *fixture, l broker.Link, d *deaf) {
			r := s.raw(l.Ends[0])
			attach(r, d, r.helloMessage(func(h *wire.Hello) { h.Flags = 1 }), 1)
		}},
		{"with several messages before HELLO", func(s *fixture, l broker.Link, d *deaf) {
			r := s.raw(l.Ends[0])
			attach(r, d, wire.Message{Type: 0x8001}, 4)
		}},
		{"two with one message", func(s *fixture, l broker.Link, d *deaf) {
			r := s.raw(l.Ends[0])
			d.give(r, r.helloMessage(nil), d.socket())
		}},
		{"after HELLO", func(s *fixture, l broker.Link, d *deaf) {
			r := s.raw(l.Ends[0])
			r.greet()
			attach(r, d, wire.Message{Type: 0x8001}, 4)
		}},
		{"in a connection that is dropped", func(s *fixture, l broker.Link, d *deaf) {
			r := s.raw(l.Ends[0])
			_ = r.send([]byte{1})
			attach(r, d, wire.Message{Type: 0x8001}, 4)
			unix.Close(r.fd)
			r.fd = -1
		}},
		{"while the port is taken", func(s *fixture, l broker.Link, d *deaf) {
			s.welcomed(l.Ends[0])
			r := s.raw(l.Ends[0])
			attach(r, d, wire.Message{Type: 0x8001}, 4)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newFixture(t)
			c, _ := s.serve()
			l := s.link("f1u")
			s.add(c, l)
			before := descriptors(t)
			d := newDeaf(t)
			tc.attack(s, l, d)

			begin := time.Now()
			honest := s.welcomed(l.Ends[1])
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if _, err := c.Status(ctx); err != nil {
				t.Errorf("status: %v", err)
			}
			to := l
			to.Slots = 256
			if err := c.Relink(ctx, to); err != nil {
				t.Errorf("relink: %v", err)
			}
			if took := time.Since(begin); took > testenv.Patient(20*time.Second) {
				t.Errorf("the other end and the operator waited %v", took)
			}
			honest.hangUp()
			if err := c.Remove(ctx, "f1u"); err != nil {
				t.Errorf("remove: %v", err)
			}
			d.end()
			settles(t, before)
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker"
)

// guestsMax bounds the connections of one end. More wait in the kernel.
const guestsMax = 8

// pause is the least time between two introductions of a link, and until an end that has not
// read is looked at again.
const pause = 50 * time.Millisecond

// meeting is what the broker does for a link.
type meeting struct {
	name string
	log  *slog.Logger

	mu    sync.Mutex
	doors [2]*door // nil: no pod of this node
	last  time.Time
	timer *time.Timer // of the next look; nil: there is none
}

// door is the socket at which one end calls.
type door struct {
	m      *meeting
	end    End
	l      *net.UnixListener
	remove func() error
	free   chan struct{} // a place for each guest

	// The meeting's lock guards these.
	guests []*guest // the oldest first
	closed bool
}

// guest is a connection of an end.
type guest struct {
	c          *net.UnixConn
	introduced bool
}

func open(m *meeting, e End) (*door, error) {
	l, remove, err := broker.ListenFor(e.Socket, e.User)
	if err != nil {
		return nil, err
	}
	return &door{m: m, end: e, l: l, remove: remove, free: make(chan struct{}, guestsMax)}, nil
}

// close closes the socket. Its guests learn it by a hang-up.
func (d *door) close() error {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	d.closed = true
	for _, g := range d.guests {
		g.hangUp()
	}
	// Connections that nobody has accepted may bring descriptors, and close can block for as long
	// as their sender likes.
	go d.l.Close()
	return d.remove()
}

// admit accepts connections until the door is closed.
func (d *door) admit() {
	for {
		d.free <- struct{}{}
		c, err := d.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.m.log.Error("meeting", "link", d.m.name, "error", err)
			<-d.free
			time.Sleep(pause)
			continue
		}
		go d.attend(&guest{c: c})
	}
}

// attend keeps a guest until it hangs up. It can send nothing, since that could hold
// descriptors that block. What it sent before it was accepted keeps only this goroutine busy.
func (d *door) attend(g *guest) {
	_ = g.c.CloseRead()
	d.m.mu.Lock()
	d.guests = append(d.guests, g)
	if d.closed {
		g.hangUp()
	}
	d.m.mu.Unlock()
	d.m.introduce()
	g.awaitHangUp()
	d.m.mu.Lock()
	d.guests = slices.DeleteFunc(d.guests, func(o *guest) bool { return o == g })
	d.m.mu.Unlock()
	_ = g.c.Close()
	<-d.free
}

// hangUp ends the connection; the goroutine that attends to the guest closes it.
func (g *guest) hangUp() {
	_ = g.control(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) })
}

// awaitHangUp returns when the connection has ended.
func (g *guest) awaitHangUp() {
	raw, err := g.c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		state := []unix.PollFd{{Fd: int32(fd)}} // a hang-up is always reported
		n, err := unix.Poll(state, 0)
		return err != nil && !errors.Is(err, unix.EINTR) || n > 0
	})
}

func (g *guest) control(f func(fd int) error) error {
	raw, err := g.c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// unread reports whether the guest has not yet taken what it was given. So no end holds more
// than one descriptor for each connection in the kernel.
func (g *guest) unread() bool {
	var n int
	err := g.control(func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return err
	})
	return err == nil && n > 0
}

// give sends a descriptor.
func (g *guest) give(half int) error {
	return g.control(func(fd int) error {
		return unix.Sendmsg(fd, []byte{0}, unix.UnixRights(half), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
}

// introduce gives the latest guest of the first end and each new one of the second a pair of sockets.
func (m *meeting) introduce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.doors[0] == nil || m.doors[1] == nil || len(m.doors[0].guests) == 0 {
		return
	}
	shows := m.doors[0].guests[len(m.doors[0].guests)-1]
	i := slices.IndexFunc(m.doors[1].guests, func(g *guest) bool { return !g.introduced })
	if i < 0 {
		return
	}
	looks := m.doors[1].guests[i]
	if time.Since(m.last) < pause || shows.unread() {
		m.later()
		return
	}
	m.last, looks.introduced = time.Now(), true
	if err := join(shows, looks); err != nil {
		m.log.Error("meeting", "link", m.name, "error", err)
		looks.hangUp() // it calls again
	}
	m.later()
}

// later looks again after a pause.
func (m *meeting) later() {
	if m.timer == nil {
		m.timer = time.AfterFunc(pause, func() {
			m.mu.Lock()
			m.timer = nil
			m.mu.Unlock()
			m.introduce()
		})
	}
}

// join gives two guests the halves of a new pair.
func join(a, b *guest) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = a.give(pair[0])
	if err == nil {
		err = b.give(pair[1])
	}
	return errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
}

// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// Bounds on the broker's cost per end.
const (
	sendBuffer      = 16 << 10               // bytes that the kernel buffers for an end that does not read
	maxPending      = 8                      // connections of one port before HELLO; a newer one replaces the oldest
	helloGrace      = 100 * time.Millisecond // from the connection until it may be replaced
	acceptsPerStep  = 8                      // before other descriptors get their turn
	messagesPerStep = 64                     // of one connection
)

// end is one port: its socket, and the connection that has it open.
type end struct {
	link      *link
	side      int
	listener  *source // nil: the port is on another host
	socket    place   // address of the listener
	muted     bool
	again     time.Time    // when a muted port listens again
	pending   []*conn      // oldest first
	conn      *conn        // has sent HELLO
	accepts   bucket       // of connections
	held      atomic.Int32 // telemetry memfds still in use anywhere
	discarder discarder
	refused   uint64
	capture   *capturing // running, or waiting for an end; nil: no capture
}

// conn is one connection.
type conn struct {
	source   *source
	process  *source // pidfd; nil if the kernel has none
	pid      int
	deadline time.Time // of HELLO, the answer to CLASSES, or the peer's READOPT; zero: none
	messages bucket

	hello     *wire.Hello // nil: not yet
	presented *memory     // presented by a live end
	claims    uint32      // the generation that it presents
	welcomed  bool
	offered   uint32 // the newest generation offered to it; 0: none
	live      uint32 // the generation of its last ACTIVE
	mapped    bool   // it sent MAPPED for the offered one
	active    bool

	telemetry int // memfd; -1: none yet
	asked     time.Time
	stats     *wire.Stats  // its latest answer
	starts    []*capturing // captures whose start it has not answered
	classing  int          // how many CLASSES it has not answered
	unclassed string       // why it does not queue so, as it last answered

	failed bool // sweep will close it
	left   bool // it sent BYE
	reason string
}

func newEnd(l *link, side int) *end {
	return &end{link: l, side: side, accepts: bucket{burst: 64, every: 20 * time.Millisecond}}
}

// bind binds the port's socket.
func (e *end) bind(s *End) error {
	fd, at, err := listen(s.Socket, s.Owner)
	if err != nil {
		return err
	}
	e.socket = at
	if e.listener, err = e.link.poller.add(fd, true, e.accept); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	return nil
}

func (e *end) spec() *End { return &e.link.entry.Link.Ends[e.side] }

// peer is the other end; nil if the link has only one.
func (e *end) peer() *end {
	if len(e.link.ends) < 2 {
		return nil
	}
	return e.link.ends[1-e.side]
}

// accept takes connections. If they come too fast, they wait in the kernel.
func (e *end) accept() {
	for range acceptsPerStep {
		now := time.Now()
		if e.discarder.full() {
			e.mute(now.Add(acceptPause))
			return
		}
		if room := e.nextRoom(); now.Before(room) {
			e.mute(room)
			return
		}
		if !e.accepts.take(now) {
			e.mute(e.accepts.next(now))
			return
		}
		fd, _, err := unix.Accept4(e.listener.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			e.accepts.giveBack()
			if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ECONNABORTED) {
				e.link.log.print("port %s: accept: %v", e.spec().Port, err)
				e.mute(now.Add(acceptPause)) // for example, no descriptors left
			}
			return
		}
		if e.taken() {
			e.refused++
			_ = send(fd, errorMessage(unix.EBUSY, wire.TypeHello, "the port is open"))
			e.discarder.hangUp(fd)
			continue
		}
		e.greet(fd)
	}
}

// taken reports whether a live end has the port. An end found dead loses it.
func (e *end) taken() bool {
	if e.conn == nil {
		return false
	}
	process := -1
	if e.conn.process != nil {
		process = e.conn.process.fd
	}
	if !e.conn.failed && !hungUp(e.conn.source.fd, process) {
		return true
	}
	e.conn.failed = true
	e.link.sweep()
	return e.conn != nil
}

// nextRoom is when another connection can wait for HELLO: the zero time if now.
func (e *end) nextRoom() time.Time {
	if len(e.pending) < maxPending {
		return time.Time{}
	}
	return e.pending[0].deadline.Add(helloGrace - e.link.broker.timeouts.hello)
}

// greet waits for HELLO on a new connection.
func (e *end) greet(fd int) {
	if len(e.pending) >= maxPending {
		e.replace(e.pending[0])
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer) // never fails on a socket
	c := &conn{telemetry: -1, deadline: time.Now().Add(e.link.broker.timeouts.hello), messages: bucket{burst: 64, every: 10 * time.Millisecond}}
	s, err := e.link.poller.add(fd, false, func() { e.read(c) })
	if err != nil {
		e.discarder.hangUp(fd)
		e.link.log.print("port %s: %v", e.spec().Port, err)
		return
	}
	c.source = s
	e.pending = append(e.pending, c)
}

// replace drops a pending connection for a newer one, unless its HELLO has just come.
func (e *end) replace(c *conn) {
	e.read(c)
	if c.hello == nil && !c.failed {
		e.refuse(c, unix.ETIMEDOUT, wire.TypeHello, "no HELLO, and a newer connection came")
	}
	if c.failed {
		e.dropPending(c)
	}
}

// mute leaves connections in the kernel until that time.
func (e *end) mute(until time.Time) {
	e.again = until
	if e.muted {
		return
	}
	if err := e.link.poller.mute(e.listener); err != nil {
		e.link.log.print("port %s: %v", e.spec().Port, err)
	}
	e.muted = true
}

func (e *end) unmute() {
	if err := e.link.poller.unmute(e.listener); err != nil {
		e.link.log.print("port %s: %v", e.spec().Port, err)
	}
	e.muted = false
}

// next is the next deadline of this end; zero: never.
func (e *end) next() time.Time {
	var next time.Time
	for _, c := range append(slices.Clone(e.pending), e.conn) {
		if c != nil && !c.deadline.IsZero() && (next.IsZero() || c.deadline.Before(next)) {
			next = c.deadline
		}
	}
	if e.muted && (next.IsZero() || e.again.Before(next)) {
		next = e.again
	}
	return next
}

// step runs all actions that are due.
func (e *end) step(now time.Time) {
	for _, c := range slices.Clone(e.pending) {
		if c.failed || !now.Before(c.deadline) {
			if !c.failed {
				e.refuse(c, unix.ETIMEDOUT, wire.TypeHello, "no HELLO in time")
			}
			e.dropPending(c)
		}
	}
	if c := e.conn; c != nil && !c.deadline.IsZero() && !now.Before(c.deadline) {
		if c.classing > 0 {
			e.refuse(c, unix.ETIMEDOUT, wire.TypeClasses, "no answer to CLASSES in time")
		}
		c.failed = true // or the peer of a live end did not come; the end will try again
	}
	if e.muted && !now.Before(e.again) {
		e.unmute()
	}
}

func (e *end) dropPending(c *conn) {
	if c.reason != "" {
		e.link.log.print("port %s: %s", e.spec().Port, c.reason)
	}
	e.pending = slices.DeleteFunc(e.pending, func(p *conn) bool { return p == c })
	e.drop(c)
}

// read takes the pending messages of a connection.
func (e *end) read(c *conn) {
	for range messagesPerStep {
		if c.failed {
			return
		}
		if e.discarder.full() {
			c.fail("descriptors that it sent cannot be closed")
			return
		}
		m, fd, err := receive(c.source.fd, c.hello == nil, &e.discarder)
		var errno unix.Errno
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, errGone):
			c.fail("")
			return
		case !c.messages.take(time.Now()):
			e.refuse(c, unix.EPROTO, 0, "too many messages")
		case errors.Is(err, wire.ErrIgnored):
			continue
		case errors.As(err, &errno):
			e.refuse(c, errno, 0, "unknown message")
		default:
			e.hear(c, m, fd)
			continue
		}
		return
	}
}

// hear handles one well-formed message.
func (e *end) hear(c *conn, m wire.Message, fd int) {
	switch body := m.Body.(type) {
	case *wire.Error:
		e.onError(c, body)
		return
	case *wire.Bye:
		c.left = true
		c.fail("")
		return
	case *wire.Hello:
		if c.hello == nil {
			e.onHello(c, m.Generation, body, fd)
			return
		}
	case *wire.Mapped:
		if c.welcomed && e.onMapped(c, m.Generation, body) {
			return
		}
	case *wire.Stats:
		if !c.asked.IsZero() {
			c.stats, c.asked = body, time.Time{}
			return
		}
	case *wire.Captured:
		if c.onCaptured(body) {
			return
		}
	case *wire.Classed:
		if e.onClassed(c, body) {
			return
		}
	case nil: // ACTIVE: the only message from an end without a body
		if c.welcomed && e.onActive(c, m.Generation) {
			return
		}
	}
	if fd >= 0 {
		e.discarder.discard(fd)
	}
	e.refuse(c, unix.EPROTO, m.Type, "not now")
}

// onError ends a connection about which the end complains.
func (e *end) onError(c *conn, m *wire.Error) {
	about := wire.Type(m.About)
	if m.Code == uint32(unix.EPROTO) && (about == wire.TypeWelcome || about == wire.TypeClasses) {
		c.fail("the function opened it with other properties, and keeps them: restart the function")
		e.link.lastError = fmt.Sprintf("port %s: %s", e.spec().Port, c.why())
		return
	}
	c.fail(fmt.Sprintf("it reports error %d (%v) about message %d: %q", m.Code, unix.Errno(m.Code), m.About, wire.Text(m.Text[:])))
}

// say sends a message; if the connection does not accept it, the connection fails.
func (e *end) say(c *conn, m wire.Message, fds ...int) {
	if c.failed {
		return
	}
	err := send(c.source.fd, m, fds...)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		c.fail("")
	} else if err != nil {
		c.fail(fmt.Sprintf("it does not take messages: %v", err))
	}
}

// refuse sends the error, and ends the connection.
func (e *end) refuse(c *conn, code unix.Errno, about wire.Type, text string) {
	e.refused++
	e.say(c, errorMessage(code, about, text))
	c.fail("refused: " + text)
}

func errorMessage(code unix.Errno, about wire.Type, text string) wire.Message {
	return wire.Message{Type: wire.TypeError, Body: wire.NewError(uint32(code), uint32(about), text)}
}

// fail marks the connection as failed; if why is "", nothing is logged.
func (c *conn) fail(why string) {
	if !c.failed {
		c.failed, c.reason = true, why
	}
}

// why is the reason as text.
func (c *conn) why() string {
	switch {
	case c.reason != "":
		return c.reason
	case c.left:
		return "it left"
	}
	return "it closed the connection"
}

// drop ends a connection and closes what it holds.
func (e *end) drop(c *conn) {
	e.discarder.hangUp(e.link.poller.release(c.source))
	e.link.poller.close(c.process)
	c.presented.close()
	if c.telemetry >= 0 {
		_ = unix.Close(c.telemetry)
	}
}

// close ends the port. It can be bound again.
func (e *end) close() {
	for _, c := range append(e.pending, e.conn) {
		if c != nil {
			e.drop(c)
		}
	}
	e.pending, e.conn, e.muted = nil, nil, false
	if e.listener == nil {
		return
	}
	e.discarder.discard(e.link.poller.release(e.listener)) // with the connections that wait there
	e.listener = nil
	if err := e.socket.unlink(); err != nil {
		e.link.log.print("port %s: %v", e.spec().Port, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// insidePort is the broker that a program in the guest sees.
type insidePort struct {
	out   *stream
	bus   bus
	index uint8
	spec  guest.Port
	inbox chan frame // messages for the program, in order
	lock  *os.File   // held while this relay serves the port

	mu          sync.Mutex
	conn        *net.UnixConn // of the program; nil: none
	number      uint32        // of the latest connection
	report      report
	generations map[uint32]*bells
}

// inboxSize is more messages than a broker sends to a program that reads them.
const inboxSize = 64

func newInsidePort(out *stream, b bus, index uint8, spec guest.Port) *insidePort {
	return &insidePort{out: out, bus: b, index: index, spec: spec, inbox: make(chan frame, inboxSize), generations: map[uint32]*bells{}}
}

// bind makes the port's socket.
func (p *insidePort) bind(path string, lock *os.File) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.lock = lock
	p.mu.Unlock()
	go p.deliver()
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			p.accept(conn)
		}
	}()
	return nil
}

// accept gives the port to a program, unless another has it.
func (p *insidePort) accept(conn *net.UnixConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		busy := wire.Message{Type: wire.TypeError, Body: wire.NewError(uint32(unix.EBUSY), uint32(wire.TypeHello), "the port is open")}
		_ = sendOn(conn, busy.Marshal()) // it hears that, or that it is hung up
		conn.Close()
		return
	}
	p.number++
	p.conn = conn
	_ = p.out.send(frame{Kind: opened, Port: p.index, Number: p.number}) // a broken stream shows when it is read
	go p.listen(conn, p.number)
}

// listen passes on what the program says.
func (p *insidePort) listen(conn *net.UnixConn, number uint32) {
	for {
		m, fds, err := receiveOn(conn, wire.FromEnd)
		if errors.Is(err, wire.ErrIgnored) {
			continue
		}
		if err != nil {
			break
		}
		closeAll(fds) // memory that it presents is a device of this guest
		if hello, ok := m.Body.(*wire.Hello); ok {
			hello.Flags &^= wire.HelloReadopt
		}
		if p.out.send(frame{Kind: message, Port: p.index, Number: number, Data: m.Marshal()}) != nil {
			break
		}
	}
	p.drop(number)
	_ = p.out.send(frame{Kind: closed, Port: p.index, Number: number}) // a broken stream shows when it is read
}

// drop hangs up on the program. Its generations go on.
func (p *insidePort) drop(number uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil || p.number != number {
		return
	}
	p.sendReport()
	p.report.close()
	p.conn.Close()
	p.conn = nil
}

// hear handles a frame of the host.
func (p *insidePort) hear(f frame) {
	switch f.Kind {
	case message, offer, closed:
		select {
		case p.inbox <- f:
		default:
			p.drop(f.Number)
		}
	case ring, hangUp:
		p.mu.Lock()
		b := p.generations[f.Number]
		p.mu.Unlock()
		switch {
		case b == nil:
		case f.Kind == ring:
			b.ring(int(f.Queue))
		default:
			b.close()
		}
	}
}

// deliver hands messages to the program, in order.
func (p *insidePort) deliver() {
	for f := range p.inbox {
		if f.Kind == closed {
			p.drop(f.Number)
			continue
		}
		m, fds, err := p.prepare(f)
		if err == nil {
			p.mu.Lock()
			if err = errGone; p.conn != nil && p.number == f.Number {
				err = sendOn(p.conn, m.Marshal(), fds...)
			}
			p.mu.Unlock()
		}
		closeAll(fds)
		if err == nil {
			continue
		}
		if f.Kind == offer {
			p.over(m.Generation)
		}
		p.drop(f.Number)
	}
}

var errGone = errors.New("the program has hung up")

// prepare makes the descriptors that belong to a message.
func (p *insidePort) prepare(f frame) (m wire.Message, fds []int, err error) {
	if m, err = wire.ParseAlone(f.Data, wire.FromBroker); err != nil {
		return m, nil, err
	}
	switch body := m.Body.(type) {
	case *wire.Welcome:
		p.mu.Lock()
		defer p.mu.Unlock()
		fds, err = p.report.begin(body)
	case *wire.Offer:
		fds, err = p.offered(int(f.Window), m.Generation, body)
	}
	return m, fds, err
}

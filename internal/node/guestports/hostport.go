// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// Bounds on QEMU and the guest's kernel. The broker waits 2 s for MAPPED, and then 5 s for
// ACTIVE. QEMU has mapped the memory, so a guest that shows it late may use both.
const (
	plugPatience   = time.Second
	mappedPatience = 500 * time.Millisecond
	unplugPatience = 10 * time.Second
	dialPatience   = time.Second // for the broker
)

// allowed are the features that work across the border of a machine: its clock is another,
// and no other descriptor than the memory's reaches it.
const allowed = wire.FeatureMessages | wire.FeatureExtras

// hostPort is the end that the broker sees.
type hostPort struct {
	relay *relay
	index uint8
	spec  guest.Port

	mu          sync.Mutex
	conn        *net.UnixConn // to the broker; nil: none
	number      uint32        // of the guest's connection
	telemetry   *os.File      // the broker's; nil: none
	generations map[uint32]*hostGeneration
	windows     map[int]windowState
}

// hostGeneration is a generation whose memory is in a window.
type hostGeneration struct {
	window int
	memory *os.File
	size   uint64
	bells  *bells
	mapped func() // sends MAPPED; the first call counts
}

func newHostPort(r *relay, index uint8, spec guest.Port) *hostPort {
	return &hostPort{relay: r, index: index, spec: spec, generations: map[uint32]*hostGeneration{}, windows: map[int]windowState{}}
}

// hear handles a frame of the guest. Only a malformed one is an error.
func (p *hostPort) hear(f frame) error {
	switch f.Kind {
	case opened:
		p.open(f.Number)
	case closed:
		p.hangUp(f.Number)
	case message:
		m, err := wire.Parse(f.Data, 0, wire.FromEnd)
		if err != nil {
			return fmt.Errorf("%w: port %s: %w", errFrame, p.spec.Name, err)
		}
		p.pass(f.Number, m)
	case ring:
		if g := p.generation(f.Number); g != nil {
			g.bells.ring(int(f.Queue))
		}
	case hangUp:
		if g := p.generation(f.Number); g != nil {
			g.bells.close()
		}
	case telemetry:
		p.report(f.Data)
	case free:
		p.empty(int(f.Window))
	default:
		return fmt.Errorf("%w: kind %d from the guest", errFrame, f.Kind)
	}
	return nil
}

func (p *hostPort) generation(number uint32) *hostGeneration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.generations[number]
}

// open connects to the broker for the guest's connection.
func (p *hostPort) open(number uint32) {
	ctx, cancel := context.WithTimeout(context.Background(), dialPatience)
	defer cancel()
	conn, err := host.DialUnix(ctx, "unixpacket", p.spec.Socket)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.conn.Close()
	}
	p.conn, p.number = conn, number
	if err != nil {
		p.conn = nil
		p.relay.out.later(frame{Kind: closed, Port: p.index, Number: number})
		return
	}
	go p.listen(conn, number)
}

// hangUp ends the connection to the broker.
func (p *hostPort) hangUp(number uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil && p.number == number {
		p.conn.Close()
		p.conn = nil
	}
}

// pass hands a message of the guest to the broker, with this relay's own MAPPED.
func (p *hostPort) pass(number uint32, m wire.Message) {
	if hello, ok := m.Body.(*wire.Hello); ok {
		hello.Features &= allowed
	}
	if m.Type == wire.TypeMapped {
		if g := p.generation(m.Generation); g != nil {
			g.mapped()
		}
		return
	}
	p.mu.Lock()
	conn := p.conn
	if number != p.number {
		conn = nil
	}
	p.mu.Unlock()
	if conn != nil && sendOn(conn, m.Marshal()) != nil {
		conn.Close() // listen notices
	}
}

// listen handles the broker's messages until the connection ends.
func (p *hostPort) listen(conn *net.UnixConn, number uint32) {
	for {
		m, fds, err := receiveOn(conn, wire.FromBroker)
		if errors.Is(err, wire.ErrIgnored) {
			continue
		}
		if err == nil {
			err = p.take(conn, number, m, fds)
		}
		if err != nil {
			break
		}
	}
	p.hangUp(number)
	_ = p.relay.out.send(frame{Kind: closed, Port: p.index, Number: number}) // a broken stream shows when it is read
	conn.Close()
}

// take handles one message of the broker; the descriptors are now the port's.
func (p *hostPort) take(conn *net.UnixConn, number uint32, m wire.Message, fds []int) error {
	switch body := m.Body.(type) {
	case *wire.Welcome:
		p.mu.Lock()
		p.telemetry.Close() // Close of a nil file only returns an error
		p.telemetry = os.NewFile(uintptr(fds[0]), "telemetry")
		p.mu.Unlock()
	case *wire.Offer:
		return p.offered(conn, number, m, body, fds)
	default:
		closeAll(fds)
	}
	if g := p.generation(m.Generation); m.Type == wire.TypeSealed && g != nil {
		if err := g.sealed(); err != nil {
			return refuse(conn, m.Type, err)
		}
	}
	return p.relay.out.send(frame{Kind: message, Port: p.index, Number: number, Data: m.Marshal()})
}

// refuse tells the broker why the connection ends.
func refuse(conn *net.UnixConn, about wire.Type, err error) error {
	code := unix.EPROTO
	_ = errors.As(err, &code)
	body := wire.NewError(uint32(code), uint32(about), err.Error())
	return errors.Join(err, sendOn(conn, wire.Message{Type: wire.TypeError, Body: body}.Marshal()))
}

// offered plugs the memory of an offer into the guest, and hands the offer on.
func (p *hostPort) offered(conn *net.UnixConn, number uint32, m wire.Message, o *wire.Offer, fds []int) error {
	if o.Kind != wire.KindShm {
		closeAll(fds)
		return refuse(conn, m.Type, fmt.Errorf("sockets do not reach a machine: %w", unix.EOPNOTSUPP))
	}
	g := &hostGeneration{memory: os.NewFile(uintptr(fds[0]), "memory"), size: o.Geometry.Size}
	inode, err := g.check()
	if err == nil {
		err = p.plug(g)
	}
	if err != nil {
		closeAll(fds[1:])
		g.memory.Close()
		return refuse(conn, m.Type, err)
	}
	p.mu.Lock()
	g.bells = newBells(fds[1:], func(queue int) {
		_ = p.relay.out.send(frame{Kind: ring, Port: p.index, Queue: uint8(queue), Number: m.Generation})
	}, func() { p.over(m.Generation) })
	mapped := wire.Message{Type: wire.TypeMapped, Generation: m.Generation, Body: &wire.Mapped{Inode: inode}}
	g.mapped = sync.OnceFunc(func() { _ = sendOn(conn, mapped.Marshal()) }) // listen notices a broken connection
	p.generations[m.Generation] = g
	p.mu.Unlock()
	time.AfterFunc(mappedPatience, g.mapped)
	return p.relay.out.send(frame{Kind: offer, Port: p.index, Window: uint8(g.window), Number: number, Data: m.Marshal()})
}

// plug puts the memory into a window that is empty.
func (p *hostPort) plug(g *hostGeneration) error {
	err := fmt.Errorf("the machine still holds the memory of %d generations: %w", len(p.spec.Windows), unix.EBUSY)
	for _, window := range p.spec.Windows {
		if !p.change(window, windowEmpty, windowUsed) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), plugPatience)
		// What an earlier relay left there is an error, until the guest frees it.
		err = p.relay.slots.plug(ctx, window, int(g.memory.Fd()), g.size)
		cancel()
		if err == nil {
			g.window = window
			return nil
		}
		p.change(window, windowUsed, windowEmpty)
	}
	return err
}

// windowState is what the relay knows of a window.
type windowState int

const (
	windowEmpty    windowState = iota // or filled by an earlier relay
	windowUsed                        // by a generation
	windowLeft                        // by its generation, but not yet by the guest's programs
	windowEmptying                    // being unplugged
)

// change changes a window's state if it is from.
func (p *hostPort) change(window int, from, to windowState) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.windows[window] != from {
		return false
	}
	p.windows[window] = to
	return true
}

// over tells the guest that a generation has ended.
func (p *hostPort) over(number uint32) {
	p.mu.Lock()
	g := p.generations[number]
	delete(p.generations, number)
	p.mu.Unlock()
	if g == nil {
		return
	}
	g.memory.Close()
	p.change(g.window, windowUsed, windowLeft)
	p.relay.out.later(frame{Kind: hangUp, Port: p.index, Number: number})
}

// empty unplugs what no program in the guest maps.
func (p *hostPort) empty(window int) {
	if !slices.Contains(p.spec.Windows, window) || !p.change(window, windowLeft, windowEmptying) && !p.change(window, windowEmpty, windowEmptying) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), unplugPatience)
		defer cancel()
		if err := p.relay.slots.unplug(ctx, window); err != nil {
			p.change(window, windowEmptying, windowLeft) // the guest asks again
			return
		}
		p.change(window, windowEmptying, windowEmpty)
	}()
}

// report copies the guest's telemetry to the broker, except the part that the broker writes.
func (p *hostPort) report(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := p.telemetry.Stat()
	if err != nil || info.Size() != int64(len(data)) || len(data) < wire.Page {
		return // no connection, or of an earlier one
	}
	_, err = p.telemetry.WriteAt(data[:wire.SampleShiftOffset], 0)
	if err == nil {
		_, _ = p.telemetry.WriteAt(data[wire.Page:], wire.Page) // memory: it cannot be full
	}
}

// end hangs up everything.
func (p *hostPort) end() {
	p.mu.Lock()
	if p.conn != nil {
		p.conn.Close()
	}
	p.telemetry.Close() // Close of a nil file only returns an error
	var all []*bells
	for _, g := range p.generations {
		all = append(all, g.bells)
	}
	p.mu.Unlock()
	for _, b := range all {
		b.close()
	}
}

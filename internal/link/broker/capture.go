// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// Bounds of a capture.
const (
	captureRing   = 16 << 20  // bytes of one ring at most, if its slots permit
	captureTotal  = 256 << 20 // for all rings of a port
	captureAnswer = 10 * time.Second
	// capturesMax leaves control connections for other requests.
	capturesMax = controlCallers / 2
)

// capturing is a capture of one end, from its request to its end.
type capturing struct {
	start   wire.Capture
	memfd   int
	started chan struct{} // closed when the start is sent; the port may open long after the request
	answer  chan error    // the end's answer
	over    chan struct{} // closed if the capture ended without being stopped
	reason  string        // set before over is closed
}

// captureParams are the parameters of the request "capture".
type captureParams struct {
	Link     string `json:"link,omitempty"` // "": any; ports of one chain have names of their own
	Function string `json:"function"`
	Port     string `json:"port"`
	Snaplen  int    `json:"snaplen"` // bytes kept per packet; 0: the largest frame
}

// captureShape is the layout of a port's capture memory, with as many slots as fit.
func captureShape(snaplen, queues int) (wire.Capture, error) {
	if snaplen < 1 || snaplen > wire.CaptureSnaplenMax {
		return wire.Capture{}, fmt.Errorf("a capture keeps 1 to %d bytes of a packet, not %d", wire.CaptureSnaplenMax, snaplen)
	}
	c := wire.Capture{Snaplen: uint32(snaplen), SlotSize: uint32((32+snaplen+63)/64) * 64, Slots: wire.CaptureSlotsMin, Queues: uint32(queues)}
	ring := uint32(min(captureRing, captureTotal/(2*queues)))
	for c.Slots < wire.CaptureSlotsMax && 2*c.Slots*c.SlotSize <= ring {
		c.Slots *= 2
	}
	_, size, err := c.Derive()
	c.Size = size
	return c, err
}

// planCapture is the layout of a capture of the port. It runs in the link's
// goroutine, as do the next four.
func (e *end) planCapture(snaplen int) (wire.Capture, error) {
	s := e.spec()
	if snaplen == 0 {
		snaplen = max(e.link.entry.Link.PacketBytes, s.MTU+ethernetBytes)
	}
	return captureShape(snaplen, s.queues())
}

// awaitEnd starts k as soon as an end has opened the port.
func (e *end) awaitEnd(k *capturing) error {
	s := e.spec()
	if e.capture != nil {
		return fmt.Errorf("port %s of %s is already being captured", s.Port, s.Function)
	}
	e.capture = k
	e.startCapture()
	return nil
}

// startCapture sends the memory to the end, if the end is connected and a
// capture waits. It is sent directly after WELCOME, so that the capture misses
// no packet.
func (e *end) startCapture() {
	c, k := e.conn, e.capture
	if k == nil || c == nil || !c.welcomed || c.failed {
		return
	}
	close(k.started)
	if c.hello.Features&wire.FeatureCapture == 0 {
		k.answer <- fmt.Errorf("the libdray in %s is too old to capture: rebuild the function with a newer one", e.spec().Function)
		e.capture = nil
		return
	}
	c.starts = append(c.starts, k)
	e.say(c, wire.Message{Type: wire.TypeCapture, Body: &k.start}, k.memfd)
}

// stopCapture stops k, if it still runs.
func (e *end) stopCapture(k *capturing) {
	if e.capture != k {
		return
	}
	e.capture = nil
	if c := e.conn; c != nil && c.welcomed && k.hasStarted() {
		e.say(c, wire.Message{Type: wire.TypeCapture, Body: &wire.Capture{}})
	}
}

// loseCapture ends a started capture because the end is gone.
func (e *end) loseCapture() {
	if k := e.capture; k != nil && k.hasStarted() {
		k.reason = "the function has closed the port"
		close(k.over)
		e.capture = nil
	}
}

func (k *capturing) hasStarted() bool {
	select {
	case <-k.started:
		return true
	default:
		return false
	}
}

// onCaptured takes the answer to the oldest unanswered start; false if there is none.
func (c *conn) onCaptured(m *wire.Captured) bool {
	if len(c.starts) == 0 {
		return false
	}
	var err error
	if m.Error != 0 {
		err = fmt.Errorf("the function cannot be captured: %w", unix.Errno(m.Error))
	}
	c.starts[0].answer <- err // has room for one
	c.starts = slices.Delete(c.starts, 0, 1)
	return true
}

// callCapture is the request "capture". Its response carries the memory, once
// a process has opened the port. The capture runs until the connection ends.
// If it ends earlier, a second response says why.
func callCapture(ctx context.Context, c *call) (any, error) {
	var p captureParams
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	if c.broker.captures.Add(1) > capturesMax {
		c.broker.captures.Add(-1)
		return nil, fmt.Errorf("%d ports of this chain are being captured already", capturesMax)
	}
	defer c.broker.captures.Add(-1)
	for _, l := range c.broker.sorted() {
		var found *end
		err := l.call(ctx, func() {
			if p.Link != "" && p.Link != l.entry.Link.Name {
				return
			}
			for _, e := range l.ends {
				if s := e.spec(); s.Function == p.Function && s.Port == p.Port {
					found = e
				}
			}
		})
		if err != nil && !errors.Is(err, errRemoved) {
			return nil, err
		}
		if found != nil {
			return nil, l.serveCapture(ctx, c.conn, found, p.Snaplen)
		}
	}
	return nil, fmt.Errorf("no native port %s of function %s", p.Port, p.Function)
}

// serveCapture answers one request, and keeps the capture until the connection
// or ctx ends, or the port is closed.
func (l *link) serveCapture(ctx context.Context, conn *net.UnixConn, e *end, snaplen int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = conn.Read(make([]byte, 1)) // the client sends nothing more
	}()
	k, err := l.newCapture(ctx, e, snaplen)
	if err != nil {
		return err
	}
	defer unix.Close(k.memfd)
	// Not under ctx: the capture must stop in any case.
	defer func() { _ = l.call(context.Background(), func() { e.stopCapture(k) }) }()
	if err := l.awaitCapture(ctx, e, k); err != nil {
		return err
	}
	if err := sendCapture(conn, k.start, k.memfd); err != nil {
		return err
	}
	select {
	case <-k.over:
		return errors.New(k.reason)
	case <-l.ended:
		return errRemoved
	case <-ctx.Done():
		return errAnswered
	}
}

// newCapture allocates the memory and starts the capture.
func (l *link) newCapture(ctx context.Context, e *end, snaplen int) (*capturing, error) {
	k := &capturing{started: make(chan struct{}), answer: make(chan error, 1), over: make(chan struct{})}
	err := l.ask(ctx, func() (err error) { k.start, err = e.planCapture(snaplen); return err })
	if err != nil {
		return nil, err
	}
	if k.memfd, err = newCaptureMemory(int64(k.start.Size)); err != nil {
		return nil, err
	}
	if err := l.ask(ctx, func() error { return e.awaitEnd(k) }); err != nil {
		// A call that was given up may still have run.
		_ = l.call(context.Background(), func() { e.stopCapture(k) })
		return nil, errors.Join(err, unix.Close(k.memfd))
	}
	return k, nil
}

// ask is call for a function that may fail.
func (l *link) ask(ctx context.Context, f func() error) error {
	failed := make(chan error, 1) // f may run after the caller gave up
	if err := l.call(ctx, func() { failed <- f() }); err != nil {
		return err
	}
	return <-failed
}

// awaitCapture waits until the end copies packets.
func (l *link) awaitCapture(ctx context.Context, e *end, k *capturing) error {
	select {
	case <-k.started:
	case <-l.ended:
		return errRemoved
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := time.NewTimer(l.broker.timeouts.capture)
	defer timer.Stop()
	select {
	case err := <-k.answer:
		return err
	case <-k.over:
		return errors.New(k.reason)
	case <-l.ended:
		return errRemoved
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	// The answer may have come while this process had no CPU.
	_ = l.call(ctx, func() {
		if e.conn != nil {
			e.read(e.conn)
		}
	})
	select {
	case err := <-k.answer:
		return err
	case <-k.over:
		return errors.New(k.reason)
	default:
		return errors.New("the function does not respond: it is stopped, or does not call dray_service")
	}
}

// newCaptureMemory creates a populated capture memfd.
func newCaptureMemory(size int64) (int, error) {
	fd, err := newMemfd("dray-capture", size, 0)
	if err != nil {
		return -1, err
	}
	if err := errors.Join(populate(fd, size), addSeals(fd, sealsTelemetry)); err != nil {
		return -1, errors.Join(fmt.Errorf("memory of a capture, %d bytes: %w", size, err), unix.Close(fd))
	}
	return fd, nil
}

// sendCapture sends the response with the memory.
func sendCapture(conn *net.UnixConn, start wire.Capture, memfd int) error {
	result, err := json.Marshal(start)
	if err != nil {
		return err
	}
	line, err := json.Marshal(response{Result: result})
	if err != nil {
		return err
	}
	_, _, err = conn.WriteMsgUnix(append(line, '\n'), unix.UnixRights(memfd), nil)
	return err
}

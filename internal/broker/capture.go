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

	"github.com/drayage/dray/internal/broker/wire"
)

// Bounds of a capture.
const (
	captureRing   = 16 << 20  // bytes of one ring, at the most, where its slots permit
	captureTotal  = 256 << 20 // of all rings of a port
	captureAnswer = 3 * time.Second
	// capturesMax leaves callers of the control socket for other requests.
	capturesMax = controlCallers / 2
)

// capturing is a capture of one end. Its fields but the channels belong to the
// link's goroutine.
type capturing struct {
	answer chan error    // what the end said to its start
	over   chan struct{} // closed when it has ended without being stopped
	reason string        // set before over is closed
}

// captureParams are those of the request "capture".
type captureParams struct {
	Function string `json:"function"`
	Port     string `json:"port"`
	Snaplen  int    `json:"snaplen"` // bytes kept of a packet; 0: the whole of the largest frame
}

// captureShape is the capture memory of a port: as many slots as there is room for.
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

// planCapture reports whether the end can be captured now, and how. It runs in
// the link's goroutine, as do startCapture and stopCapture.
func (e *end) planCapture(snaplen int) (wire.Capture, error) {
	s := e.spec()
	c := e.conn
	switch {
	case c == nil || !c.welcomed || c.failed:
		return wire.Capture{}, fmt.Errorf("no process has port %s of %s open", s.Port, s.Function)
	case c.hello.Features&wire.FeatureCapture == 0:
		return wire.Capture{}, fmt.Errorf("the libdray of %s cannot capture: build the function with a later one", s.Function)
	case c.capture != nil:
		return wire.Capture{}, fmt.Errorf("port %s of %s is being captured already", s.Port, s.Function)
	}
	if snaplen == 0 {
		snaplen = max(e.link.entry.Link.PacketBytes, s.MTU+ethernetBytes)
	}
	return captureShape(snaplen, s.queues())
}

// startCapture hands the memory to the end.
func (e *end) startCapture(k *capturing, start wire.Capture, memfd int) error {
	again, err := e.planCapture(int(start.Snaplen))
	if err != nil || again != start {
		return errors.Join(err, errors.New("the port has changed meanwhile"))
	}
	c := e.conn
	c.capture = k
	c.starts = append(c.starts, k)
	e.say(c, wire.Message{Type: wire.TypeCapture, Body: &start}, memfd)
	return nil
}

func (e *end) stopCapture(k *capturing) {
	if c := e.conn; c != nil && c.capture == k {
		c.capture = nil
		e.say(c, wire.Message{Type: wire.TypeCapture, Body: &wire.Capture{}})
	}
}

// onCaptured is the answer to the oldest start that has none; it reports whether there is one.
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

// endCapture tells whoever looks on that this connection is over.
func (c *conn) endCapture() {
	if c.capture != nil {
		c.capture.reason = "the function has closed the port"
		close(c.capture.over)
		c.capture = nil
	}
}

// callCapture is the request "capture": its response comes with the memory, and
// the capture goes on until the connection ends. A second response says why
// where it ends before.
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

// serveCapture answers one request, and holds the capture until the connection
// ends, the port is closed or ctx is over.
func (l *link) serveCapture(ctx context.Context, conn *net.UnixConn, e *end, snaplen int) error {
	k := &capturing{answer: make(chan error, 1), over: make(chan struct{})}
	start, memfd, err := l.beginCapture(ctx, e, k, snaplen)
	if err != nil {
		return err
	}
	defer func() {
		// Not under ctx: whoever is captured must not stay so.
		_ = l.call(context.Background(), func() { e.stopCapture(k) })
	}()
	err = sendCapture(conn, start, memfd)
	_ = unix.Close(memfd)
	if err != nil {
		return err
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = conn.Read(make([]byte, 1)) // whoever looks on says nothing more
	}()
	select {
	case <-left:
		return errAnswered
	case <-k.over:
		return errors.New(k.reason)
	case <-l.ended:
		return errRemoved
	case <-ctx.Done():
		return errors.New("the broker ends")
	}
}

// beginCapture makes the memory, and waits for the end to fill it.
func (l *link) beginCapture(ctx context.Context, e *end, k *capturing, snaplen int) (start wire.Capture, memfd int, err error) {
	within := func(f func() error) error {
		var failed error
		return errors.Join(l.call(ctx, func() { failed = f() }), failed)
	}
	if err := within(func() error { start, err = e.planCapture(snaplen); return err }); err != nil {
		return start, -1, err
	}
	memfd, err = newCaptureMemory(int64(start.Size))
	if err != nil {
		return start, -1, err
	}
	err = within(func() error { return e.startCapture(k, start, memfd) })
	if err == nil {
		err = l.awaitCapture(ctx, k)
	}
	if err != nil {
		_ = unix.Close(memfd)
		_ = l.call(context.Background(), func() { e.stopCapture(k) })
		return start, -1, err
	}
	return start, memfd, nil
}

func (l *link) awaitCapture(ctx context.Context, k *capturing) error {
	timer := time.NewTimer(captureAnswer)
	defer timer.Stop()
	select {
	case err := <-k.answer:
		return err
	case <-k.over:
		return errors.New(k.reason)
	case <-l.ended:
		return errRemoved
	case <-timer.C:
		return errors.New("the function does not answer: it is stopped, or does not call dray_service")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newCaptureMemory makes a capture memfd with all its pages.
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

// sendCapture answers with the memory.
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

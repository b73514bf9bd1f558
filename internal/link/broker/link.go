// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// timeouts bound how long others may take.
type timeouts struct {
	hello   time.Duration // from the connection
	classes time.Duration // to answer CLASSES
	mapped  time.Duration // from the OFFER
	active  time.Duration // from SEALED
	unread  time.Duration // to read messages that hold memory
	// readopt bounds how long a live end waits for its peer to present the
	// same. The end itself gives up slightly earlier, and tries again.
	readopt time.Duration
	capture time.Duration // to answer CAPTURE
	request time.Duration // from a connection to the control socket to the end of the request
}

// usual are the timeouts of PROTOCOL.md, section 2, and of the control socket.
var usual = timeouts{
	hello: 2 * time.Second, classes: 2 * time.Second, mapped: 2 * time.Second, active: 5 * time.Second, unread: 2 * time.Second,
	readopt: 2500 * time.Millisecond, capture: captureAnswer, request: 5 * time.Second,
}

// Bounds on allocating memory for one link's generations, however often ends
// reconnect. The kernel clears 1 to 4 GB a second.
const (
	populateBurst = 1 << 30   // bytes at once
	populateRate  = 256 << 20 // bytes a second after that
)

// phase is the state of a link's newest generation.
type phase int

const (
	phaseNone    phase = iota
	phaseOffered       // both ends have an OFFER; waiting for MAPPED
	phaseSealed        // waiting for ACTIVE
	phaseActive
)

// link serves one link. Its goroutine owns all fields: a slow end slows down
// only its own link.
type link struct {
	broker *broker
	poller *poller
	calls  chan func()   // run by the goroutine
	ended  chan struct{} // closed when the goroutine returns
	stop   bool
	last   lastStatus // for any goroutine

	entry      entry
	ends       []*end
	phase      phase
	deadline   time.Time // of the phase
	memory     *memory
	adoptable  bool // the journal has a live generation, and no newer one exists
	adopted    bool
	rebinds    uint64
	lastError  string
	pace       bucket       // of generations
	bytes      budget       // of memory allocation
	held       atomic.Int32 // generations whose memory is still in use anywhere
	log        *limitedLog
	unsaved    bool
	retryAfter time.Time // next try after a failed generation
}

// newLink binds the ports of a journal entry.
func newLink(b *broker, e entry) (*link, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	l := &link{
		broker: b, poller: p, calls: make(chan func(), 16), ended: make(chan struct{}), entry: e,
		pace: bucket{burst: 32, every: 100 * time.Millisecond}, bytes: budget{burst: populateBurst, perSecond: populateRate},
		log:       b.log.limited("link " + e.Link.Name + ": "),
		adoptable: e.Link.Kind == KindShm && e.Inode != 0 && e.Boot == b.boot,
	}
	for i := range e.Link.Ends {
		end := newEnd(l, i)
		l.ends = append(l.ends, end)
		if !end.spec().here() {
			continue
		}
		if err := end.bind(end.spec()); err != nil {
			l.close()
			return nil, fmt.Errorf("link %s: %w", e.Link.Name, err)
		}
	}
	l.last.status = l.status()
	return l, nil
}

// run serves the link until it is stopped.
func (l *link) run() {
	defer close(l.ended)
	defer l.close()
	for !l.stop {
		served, err := l.poller.serve(l.next())
		if err != nil {
			l.log.print("%v", err)
			return
		}
		for more := true; more; {
			select {
			case f := <-l.calls:
				f()
			default:
				more = false
			}
		}
		l.step(served) // what has come later may still be in time
	}
}

// call runs f in the link's goroutine, and waits for it.
func (l *link) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case l.calls <- func() { f(); close(done) }:
	case <-l.ended:
		return errRemoved
	case <-ctx.Done():
		return ctx.Err()
	}
	l.poller.poke()
	select {
	case <-done:
		return nil
	case <-l.ended:
		return errRemoved
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errRemoved = errors.New("the link is no longer served")

// next is the next deadline; zero: never.
func (l *link) next() time.Time {
	var next time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	earlier(l.deadline)
	if l.wantsGeneration() {
		earlier(l.generationDue(time.Now()))
	}
	for _, e := range l.ends {
		earlier(e.next())
	}
	return next
}

// generationDue is the earliest time of the next generation, never zero.
func (l *link) generationDue(now time.Time) time.Time {
	due := now
	for _, t := range []time.Time{l.pace.next(now), l.bytes.next(now), l.retryAfter} {
		if due.Before(t) {
			due = t
		}
	}
	return due
}

// step handles what is due: timeouts, dead ends, the next generation.
func (l *link) step(now time.Time) {
	for _, e := range l.ends {
		e.step(now)
	}
	if !l.deadline.IsZero() && !now.Before(l.deadline) {
		l.timeOut()
	}
	l.sweep()
	if !l.stop { // memory that no end will receive
		l.advance(now)
		l.sweep()
	}
	if l.unsaved {
		l.unsaved = false
		if err := l.broker.journal.save(&l.entry); err != nil {
			l.log.print("%v", err)
		}
	}
}

// sweep closes failed connections until none is left.
func (l *link) sweep() {
	for again := true; again; {
		again = false
		for _, e := range l.ends {
			if e.conn != nil && e.conn.failed {
				l.endGone(e)
				again = true
			}
		}
	}
}

// timeOut drops the ends that missed the deadline of the phase.
func (l *link) timeOut() {
	l.deadline = time.Time{}
	for _, e := range l.ends {
		c := e.conn
		switch {
		case c == nil:
		case l.phase == phaseOffered && !c.mapped:
			e.refuse(c, unix.ETIMEDOUT, wire.TypeOffer, "no MAPPED in time")
		case l.phase == phaseNone && l.hoarded() && unread(c.source.fd):
			c.fail("it does not read its messages, and they hold memory")
		case l.phase == phaseSealed && !c.active:
			e.refuse(c, unix.ETIMEDOUT, wire.TypeSealed, "no ACTIVE in time")
		}
	}
}

// endGone ends the generation of a failed connection.
func (l *link) endGone(e *end) {
	c := e.conn
	e.conn = nil
	e.loseCapture()
	if c.reason != "" {
		l.log.print("port %s: %s", e.spec().Port, c.reason)
	}
	// An adopted end is part of the generation before its WELCOME.
	part, reason := c.welcomed || c.active, uint32(wire.RebindDied)
	if c.left {
		reason = wire.RebindLeft
	}
	e.drop(c)
	if l.entry.Link.Kind == KindNetdev && c.offered != 0 {
		l.rebinds++ // each end of such a link has its own generations
	}
	if part && l.entry.Link.Kind == KindShm && l.phase != phaseNone {
		if l.phase != phaseActive {
			l.lastError = fmt.Sprintf("port %s: %s", e.spec().Port, c.why())
		}
		l.endGeneration(reason, wire.KindNone)
	}
}

// endGeneration tells the remaining ends that the newest generation is over.
func (l *link) endGeneration(reason, next uint32) {
	if l.phase != phaseNone || slices.ContainsFunc(l.ends, func(e *end) bool { return e.conn != nil && e.conn.offered != 0 }) {
		l.rebinds++
	}
	l.phase, l.deadline = phaseNone, time.Time{}
	l.memory.close()
	l.memory = nil
	for _, e := range l.ends {
		if e.conn == nil || !e.conn.welcomed || e.conn.failed {
			continue
		}
		c := e.conn
		over := wire.Message{Type: wire.TypeRebind, Generation: c.offered, Body: &wire.Rebind{Reason: reason, Next: next}}
		if c.offered != 0 {
			e.say(c, over)
		}
		// During a move, an end may still be live on the previous one.
		if c.live != 0 && c.live != c.offered {
			over.Generation = c.live
			e.say(c, over)
		}
		c.mapped, c.active, c.offered = false, false, 0
		if next == wire.KindNone {
			c.live = 0
		}
	}
}

// close closes the ports; it does not change the journal.
func (l *link) close() {
	for _, e := range l.ends {
		e.close()
	}
	l.memory.close()
	l.poller.end()
}

// part tells the ends to expect a new broker, or that the link is removed.
func (l *link) part(reason uint32, over bool) {
	if over && l.phase != phaseNone {
		l.endGeneration(wire.RebindPolicy, wire.KindNone)
	}
	for _, e := range l.ends {
		if e.conn != nil && !e.conn.failed {
			e.say(e.conn, wire.Message{Type: wire.TypeBye, Body: &wire.Bye{Reason: reason}})
		}
	}
	l.stop = true
}

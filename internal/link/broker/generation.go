// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// wantsGeneration reports whether a new generation is needed.
func (l *link) wantsGeneration() bool {
	if l.entry.Link.Kind == KindNetdev {
		return slices.ContainsFunc(l.ends, (*end).wantsSockets)
	}
	return l.bothWait() && !l.hoarded()
}

// bothWait reports whether both ends of a shared-memory link are connected without a generation.
func (l *link) bothWait() bool {
	return l.entry.Link.Kind == KindShm && l.phase == phaseNone && l.ends[0].ready() && l.ends[1].ready()
}

// ready reports whether an end is connected, and has answered everything before a generation.
func (e *end) ready() bool {
	return e.conn != nil && e.conn.welcomed && e.conn.classing == 0 && !e.conn.failed
}

// hoarded reports whether the ends hold so much memory of earlier generations
// that the broker must allocate no more.
func (l *link) hoarded() bool { return l.broker.ledger.tooMany(&l.held) }

// awaitRelease logs why there is no generation. The link continues when the ends release
// memory. An end that does not even read its messages is dropped after a while.
func (l *link) awaitRelease(now time.Time) {
	if why := fmt.Sprintf("the ends still hold the memory of %d earlier generations", heldMax); l.lastError != why {
		l.lastError = why
		l.log.print("%s", why)
	}
	if l.deadline.IsZero() {
		l.deadline = now.Add(l.broker.timeouts.unread)
	}
}

// count counts a generation's memory until nobody uses it.
func (l *link) count(m *memory) error {
	return l.broker.ledger.add(m.fd, &l.held, l.poller.poke)
}

// advance offers the next generation, unless generations come too fast.
func (l *link) advance(now time.Time) {
	if l.bothWait() && l.hoarded() {
		l.awaitRelease(now)
	}
	if !l.wantsGeneration() || l.generationDue(now).After(now) || !l.pace.take(now) {
		return
	}
	l.retryAfter = time.Time{}
	var err error
	if l.entry.Link.Kind == KindNetdev {
		err = l.offerNetdev()
	} else {
		err = l.offerShm()
	}
	if err != nil {
		l.retryAfter = time.Now().Add(time.Second)
		if l.lastError != err.Error() {
			l.lastError = err.Error()
			l.log.print("%v", err)
		}
	}
}

// nextGeneration is a number higher than all earlier ones.
func (l *link) nextGeneration() (uint32, error) {
	if l.entry.Generation == 1<<32-1 {
		return 0, fmt.Errorf("link %s has used up all generation numbers: remove it and add it again", l.entry.Link.Name)
	}
	l.entry.Generation++
	l.entry.Inode, l.adopted = 0, false
	return l.entry.Generation, nil
}

// offerShm creates memory for both ends.
func (l *link) offerShm() error {
	offer, err := l.shmOffer()
	if err != nil {
		return err
	}
	m, err := l.entry.Link.newMemory(offer.Geometry)
	if !errors.Is(err, errNoRoom) { // a failure half way costs as much
		l.bytes.spend(time.Now(), offer.Geometry.Size)
	}
	if err != nil {
		return err
	}
	if err := l.count(m); err != nil {
		m.close()
		return err
	}
	generation, err := l.nextGeneration()
	if err != nil {
		m.close()
		return err
	}
	fds, err := bells(m.fd, int(offer.Queues))
	if err != nil {
		m.close()
		return err
	}
	// Keep no copy of a bell here, so that each end notices if the other hangs up. Its peer
	// may have filled it already.
	defer func() {
		l.ends[1].discarder.discard(fds[0][1:]...)
		l.ends[0].discarder.discard(fds[1][1:]...)
	}()
	offer.Geometry, l.memory = m.geometry, m
	l.phase, l.deadline = phaseOffered, time.Now().Add(l.broker.timeouts.mapped)
	for i, e := range l.ends {
		o := offer
		o.Side, o.PeerMode, o.Clock = uint32(i), e.peer().conn.hello.Mode, e.conn.hello.Clock
		e.conn.offered, e.conn.mapped, e.conn.active = generation, false, false
		e.say(e.conn, wire.Message{Type: wire.TypeOffer, Generation: generation, Body: &o}, fds[i]...)
	}
	return nil
}

// shmOffer is the part of the offer that both ends share.
func (l *link) shmOffer() (wire.Offer, error) {
	a, b := l.ends[0].conn.hello, l.ends[1].conn.hello
	o := wire.Offer{Kind: wire.KindShm, Queues: uint32(min(l.ends[0].queuesInUse(), l.ends[1].queuesInUse())), Features: a.Features & b.Features & features}
	if a.Clock != b.Clock {
		o.Features &^= wire.FeatureStamps
	}
	g, err := geometryOf(&l.entry.Link, o.Queues, o.Features&wire.FeatureMessages != 0)
	o.Geometry = g
	return o, err
}

// bells creates a socket pair per queue: for each side the memory, then its bells.
func bells(memory, queues int) (fds [2][]int, err error) {
	fds = [2][]int{{memory}, {memory}}
	for range queues {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeAll(fds[0][1:])
			closeAll(fds[1][1:])
			return fds, fmt.Errorf("bells: %w", err)
		}
		// Without it, the ends look before they read a bell.
		_, _ = host.RefuseRights(pair[0]), host.RefuseRights(pair[1])
		fds[0], fds[1] = append(fds[0], pair[0]), append(fds[1], pair[1])
	}
	return fds, nil
}

// offerNetdev gives each waiting end packet sockets on its interface. It opens
// all sockets before it hands any out, so no frame is lost. The ends of such a
// link live and die independently.
func (l *link) offerNetdev() error {
	sockets := make([][]int, len(l.ends))
	var errs []error
	for i, e := range l.ends {
		if e.wantsSockets() {
			fds, err := l.broker.packetSockets(e.spec(), e.queuesInUse())
			sockets[i], errs = fds, append(errs, err)
		}
	}
	defer func() {
		for _, fds := range sockets {
			closeAll(fds)
		}
	}()
	for i, e := range l.ends {
		if len(sockets[i]) == 0 {
			continue
		}
		generation, err := l.nextGeneration()
		if err != nil {
			return err
		}
		c := e.conn
		c.offered, c.active = generation, false
		offer := &wire.Offer{Kind: wire.KindNetdev, Side: uint32(e.side), PeerMode: wire.ModeSleeping, Queues: uint32(len(sockets[i])),
			Features: c.hello.Features & features, Clock: c.hello.Clock}
		e.say(c, wire.Message{Type: wire.TypeOffer, Generation: generation, Body: offer}, sockets[i]...)
		l.unsaved = true
	}
	err := errors.Join(errs...)
	if err == nil {
		l.lastError = ""
	}
	return err
}

// wantsSockets reports whether an end of a netdev link still needs sockets.
func (e *end) wantsSockets() bool {
	return e.ready() && e.conn.offered == 0
}

// queuesInUse is the most queues that the end will use.
func (e *end) queuesInUse() int {
	if wanted := int(e.conn.hello.Queues); wanted > 0 {
		return min(wanted, e.spec().queues())
	}
	return e.spec().queues()
}

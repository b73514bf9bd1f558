// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// maxPresented bounds the generation number that an end may present, so that
// no end can use up the numbers.
const maxPresented = 1 << 31

// onHello gives the port to a connection; fd is the presented memory, or -1.
func (e *end) onHello(c *conn, generation uint32, hello *wire.Hello, fd int) {
	_ = host.RefuseRights(c.source.fd) // HELLO is the only message that may bring a descriptor
	c.hello, c.claims = hello, generation
	if fd >= 0 {
		e.present(c, fd)
	}
	if name := wire.Text(hello.Port[:]); name != e.spec().Port {
		e.refuse(c, unix.EPROTO, wire.TypeHello, "this is the socket of port "+e.spec().Port)
		return
	}
	if e.taken() {
		e.refuse(c, unix.EBUSY, wire.TypeHello, "the port is open")
		return
	}
	e.pending = slices.DeleteFunc(e.pending, func(p *conn) bool { return p == c })
	e.conn, c.deadline = c, time.Time{}
	e.watch(c)
	e.link.admit(e)
}

// present keeps the memory that an end presents, if it can be a link's.
func (e *end) present(c *conn, fd int) {
	m, ok := presentedMemory(fd)
	if !ok {
		e.discarder.discard(fd)
		return
	}
	c.presented = m
}

// watch detects the death of the process, even if one of its children keeps
// the connection open.
func (e *end) watch(c *conn) {
	var pidfd int
	c.pid, pidfd = peerOf(c.source.fd)
	if pidfd < 0 {
		return
	}
	s, err := e.link.poller.add(pidfd, false, func() { c.fail("") })
	if err != nil {
		_ = unix.Close(pidfd)
		return
	}
	c.process = s
}

// admit decides how an end continues after HELLO: on the journal's generation,
// on a new one, or waiting for its peer to present the same.
func (l *link) admit(e *end) {
	c := e.conn
	if l.adoptable && l.matches(c) {
		peer := e.peer().conn
		switch {
		case !e.peer().taken(): // or its connection has just failed, and it will reconnect
			c.deadline = time.Now().Add(l.broker.timeouts.readopt)
			return
		case l.matches(peer) && !peer.welcomed:
			l.adopt()
			return
		}
	}
	if c.presented != nil && c.claims > l.entry.Generation && c.claims < maxPresented {
		l.entry.Generation, l.entry.Inode = c.claims, 0 // the journal is older than the link
	}
	l.adoptable = false
	for _, e := range l.ends {
		if e.conn != nil && e.conn.hello != nil && !e.conn.welcomed {
			e.welcome(e.conn, false)
		}
	}
}

// matches reports whether an end presents the memory in the journal.
func (l *link) matches(c *conn) bool {
	m, j := c.presented, &l.entry
	return m != nil && !c.failed && c.claims == j.Generation && m.device == j.Device && m.inode == j.Inode && m.geometry.Size == j.Geometry.Size
}

// adopt continues with the generation that both ends are live on.
func (l *link) adopt() {
	l.adoptable, l.adopted = false, true
	for _, e := range l.ends {
		c := e.conn
		c.deadline = time.Time{}
		e.welcome(c, true)
		c.offered, c.live, c.mapped, c.active = l.entry.Generation, l.entry.Generation, true, true
		if l.memory == nil {
			l.memory, c.presented = c.presented, nil
			l.memory.geometry, l.memory.pages = l.entry.Geometry, l.entry.Pages
			if err := l.count(l.memory); err != nil {
				l.log.print("%v", err)
				l.held.Add(1) // it is live already; nothing will say when it is released
			}
			continue
		}
		c.presented.close()
		c.presented = nil
	}
	l.phase = phaseActive
	l.log.print("adopted generation %d", l.entry.Generation)
}

// welcome sends an end the properties of its port.
func (e *end) welcome(c *conn, readopted bool) {
	s := e.spec()
	w := &wire.Welcome{
		Features:      c.hello.Features & features,
		Port:          c.hello.Port,
		MAC:           [6]byte(s.MAC),
		MTU:           uint32(s.MTU),
		Queues:        uint32(s.queues()),
		SampleShift:   e.link.entry.Link.sampleShift(),
		HoldQuota:     s.HoldQuota,
		TelemetrySize: wire.TelemetrySize(s.queues()),
	}
	if s.HoldPolicy == HoldCopy {
		w.HoldPolicy = wire.HoldCopy
	}
	switch a := s.IP.Addr(); {
	case a.Is4():
		w.IP4, w.IP4Prefix = a.As4(), uint8(s.IP.Bits())
	case a.Is6():
		w.IP6, w.IP6Prefix = a.As16(), uint8(s.IP.Bits())
	}
	m := wire.Message{Type: wire.TypeWelcome, Body: w}
	if readopted {
		w.Flags, m.Generation = wire.WelcomeReadopted, e.link.entry.Generation
	}
	if s.Classes != nil {
		w.Flags |= wire.WelcomeClasses
	}
	if e.lacksClasses(c) {
		e.refuse(c, unix.EPROTONOSUPPORT, wire.TypeHello, "the port has traffic classes: this needs a newer libdray")
		return
	}
	if e.link.broker.ledger.tooMany(&e.held) {
		e.refuse(c, unix.ENOMEM, wire.TypeHello, "the memory of earlier connections is still held")
		return
	}
	fd, err := newTelemetry(int64(w.TelemetrySize), w.SampleShift)
	if err != nil {
		e.refuse(c, unix.ENOMEM, wire.TypeHello, "no memory for telemetry")
		e.link.log.print("telemetry: %v", err)
		return
	}
	defer unix.Close(fd)
	if err := e.link.broker.ledger.add(fd, &e.held, func() {}); err != nil {
		e.refuse(c, unix.ENOMEM, wire.TypeHello, "the memory of connections cannot be counted")
		e.link.log.print("%v", err)
		return
	}
	// Flags such as O_APPEND belong to an open file, so the broker's is not the end's.
	own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		e.refuse(c, unix.ENOMEM, wire.TypeHello, "no memory for telemetry")
		e.link.log.print("telemetry: %v", err)
		return
	}
	c.telemetry, c.welcomed, c.deadline = own, true, time.Time{}
	if !readopted {
		c.presented.close()
		c.presented = nil
	}
	e.say(c, m, fd)
	e.sendClasses(c, readopted)
	e.startCapture()
}

// features are the features that this broker supports.
const features = wire.FeaturesKnown

// newTelemetry creates the memfd in which one end reports. Only its size is
// sealed: the broker reads it like any file and trusts none of it.
func newTelemetry(size int64, sampleShift uint32) (int, error) {
	fd, err := newMemfd("dray-telemetry", size, 0)
	if err != nil {
		return -1, err
	}
	err = populate(fd, size)
	if err == nil {
		err = writeSampleShift(fd, sampleShift)
	}
	if err == nil {
		err = addSeals(fd, sealsTelemetry)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// writeSampleShift sets how often an end stamps packets from now on.
func writeSampleShift(telemetry int, shift uint32) error {
	if _, err := unix.Pwrite(telemetry, binary.LittleEndian.AppendUint32(nil, shift), wire.SampleShiftOffset); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}

// onMapped reports whether MAPPED was allowed now.
func (e *end) onMapped(c *conn, generation uint32, m *wire.Mapped) bool {
	l := e.link
	if generation < c.offered {
		return true // for a replaced offer
	}
	if l.phase != phaseOffered || generation != c.offered || c.mapped {
		return c.offered == 0 // for an offer that has just ended
	}
	if m.Inode != l.memory.inode {
		e.refuse(c, unix.EPROTO, wire.TypeMapped, "not the offered memory")
		return true
	}
	c.mapped = true
	if peer := e.peer().conn; peer != nil && peer.mapped {
		l.seal()
	}
	return true
}

// onActive reports whether ACTIVE was allowed now.
func (e *end) onActive(c *conn, generation uint32) bool {
	l := e.link
	if generation < c.offered {
		return true
	}
	netdev := l.entry.Link.Kind == KindNetdev
	if c.offered == 0 || generation != c.offered || c.active || !netdev && l.phase != phaseSealed {
		return c.offered == 0 // for an offer that has just ended
	}
	c.active, c.live = true, generation
	if peer := e.peer(); !netdev && peer.conn != nil && peer.conn.active {
		l.phase, l.deadline, l.lastError = phaseActive, time.Time{}, ""
	}
	return true
}

// seal makes the memory safe for both ends and lets them go live. Only then
// does it write the journal: an end does not wait for a disk.
func (l *link) seal() {
	if err := addSeals(l.memory.fd, sealsLive); err != nil {
		for _, e := range l.ends {
			e.refuse(e.conn, unix.EPERM, wire.TypeMapped, "the memory cannot be sealed: an end has changed its seals")
		}
		return
	}
	if err := l.memory.complete(); err != nil {
		for _, e := range l.ends {
			e.refuse(e.conn, unix.EPERM, wire.TypeMapped, err.Error())
		}
		return
	}
	l.phase, l.deadline = phaseSealed, time.Now().Add(l.broker.timeouts.active)
	for _, e := range l.ends {
		e.say(e.conn, wire.Message{Type: wire.TypeSealed, Generation: e.conn.offered})
	}
	j := &l.entry
	j.Boot, j.Device, j.Inode, j.Pages, j.Geometry = l.broker.boot, l.memory.device, l.memory.inode, l.memory.pages, l.memory.geometry
	l.unsaved = true
}

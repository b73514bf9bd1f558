// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// Classes are the traffic classes of what a port sends (PROTOCOL.md, section 12).
type Classes struct {
	Names []string     `json:"names,omitempty"` // in the order of the classes; none if there is one for everything
	Order wire.Classes `json:"order"`
}

// ClassesStatus is how a port queues what it sends. The function reports all but Error,
// and may report anything.
type ClassesStatus struct {
	Error     string        `json:"error,omitempty"` // why the function does not queue so
	Reported  bool          `json:"reported"`        // the function has written possible values
	AsOrdered bool          `json:"as_ordered"`      // in use as ordered; limits may be lower
	Scheduler string        `json:"scheduler,omitempty"`
	Rate      uint64        `json:"rate,omitempty"` // bit/s of all together; 0: no limit
	Burst     uint32        `json:"burst,omitempty"`
	Classes   []ClassStatus `json:"classes,omitempty"`
}

// ClassStatus is one traffic class, since the port was opened or last got other classes.
type ClassStatus struct {
	Name        string `json:"name"` // "all": there is one for everything
	Discipline  string `json:"discipline"`
	Limit       uint32 `json:"limit"` // packets; bfifo: bytes
	Sent        uint64 `json:"sent"`
	SentBytes   uint64 `json:"sent_bytes"`
	Dropped     uint64 `json:"dropped"` // without Late
	Late        uint64 `json:"late"`    // dropped, because they would have missed their slot
	Marked      uint64 `json:"marked"`  // with ECN
	Queued      uint32 `json:"queued"`
	QueuedMost  uint32 `json:"queued_most"`
	QueuedBytes uint64 `json:"queued_bytes"`
	LongestNS   uint64 `json:"longest_ns"` // the longest wait of a packet that was sent
}

var (
	// Schedulers are the names of what shares a port among classes; "none": there is one.
	Schedulers = [...]string{wire.SchedulerNone: "none", wire.SchedulerStrict: "prio", wire.SchedulerHTB: "htb", wire.SchedulerHFSC: "hfsc"}
	// Disciplines are the names of the disciplines of a class.
	Disciplines = [...]string{wire.DisciplinePFIFO: "pfifo", wire.DisciplineBFIFO: "bfifo", wire.DisciplineSFQ: "sfq",
		wire.DisciplineCoDel: "codel", wire.DisciplineFQCoDel: "fq_codel", wire.DisciplineSlot: "slot"}
)

func (c *Classes) check(queues int) error {
	switch {
	case c == nil:
		return nil
	case queues > 1:
		return fmt.Errorf("traffic classes take one queue, not %d", queues)
	case len(c.Names) > 0 && len(c.Names) != int(c.Order.Classes):
		return fmt.Errorf("%d names of %d traffic classes", len(c.Names), c.Order.Classes)
	}
	return c.Order.Check()
}

// name is the name of class i.
func (c *Classes) name(i int) string {
	if c == nil || i >= len(c.Names) {
		return "all"
	}
	return c.Names[i]
}

// lacksClasses reports whether an end cannot queue as its port must.
func (e *end) lacksClasses(c *conn) bool {
	return e.spec().Classes != nil && c.hello.Features&wire.FeatureClasses == 0
}

// sendClasses orders the port's traffic classes: directly after WELCOME, and when they change.
// There is no new generation before the answer. An adopted link continues meanwhile,
// without a deadline.
func (e *end) sendClasses(c *conn, readopted bool) {
	ordered := e.spec().Classes
	if ordered == nil {
		return
	}
	order := ordered.Order
	c.classing++
	if !readopted {
		c.deadline = time.Now().Add(e.link.broker.timeouts.classes)
	}
	e.say(c, wire.Message{Type: wire.TypeClasses, Body: &order})
}

// onClassed takes the answer; false if none is due.
func (e *end) onClassed(c *conn, m *wire.Classed) bool {
	if c.classing == 0 {
		return false
	}
	if c.classing--; c.classing == 0 {
		c.deadline = time.Time{}
	}
	if c.unclassed = ""; m.Error != 0 {
		c.unclassed = fmt.Sprintf("the function cannot queue so: %v", unix.Errno(m.Error))
		e.link.log.print("port %s: traffic classes: %s", e.spec().Port, c.unclassed)
	}
	return true
}

// classesStatus is what an end reports of its classes; nil if the port has none.
func (e *end) classesStatus(c *conn, t *wire.Telemetry) *ClassesStatus {
	ordered := e.spec().Classes
	if ordered == nil {
		return nil
	}
	s := &ClassesStatus{Error: c.unclassed}
	if t.Classes == nil {
		return s
	}
	used := t.Classes // checked
	s.Reported, s.AsOrdered = true, ordered.fulfilledBy(used)
	s.Scheduler, s.Rate, s.Burst = Schedulers[used.Scheduler], used.Rate, used.Burst
	for i := range min(used.Classes, ordered.Order.Classes) { // more would have no names
		plan, seen := used.Class[i], t.Class[i]
		s.Classes = append(s.Classes, ClassStatus{
			Name: ordered.name(int(i)), Discipline: Disciplines[plan.Discipline], Limit: plan.Limit,
			Sent: seen.Packets, SentBytes: seen.Bytes, Dropped: seen.Dropped, Late: seen.Late, Marked: seen.Marked,
			Queued: seen.Queued, QueuedMost: seen.QueuedMost, QueuedBytes: seen.QueuedBytes, LongestNS: seen.LongestNS,
		})
	}
	return s
}

// fulfilledBy compares what is in use with the order; its limits may be lower.
func (c *Classes) fulfilledBy(used *wire.Classes) bool {
	same := *used
	for i := range same.Class {
		if ordered := c.Order.Class[i].Limit; same.Class[i].Limit < ordered {
			same.Class[i].Limit = ordered
		}
	}
	return same == c.Order
}

// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

// ClassesOf are the traffic classes for a qdisc, for packets of mtu bytes of layer 3, and
// the packet buffers that the port needs. Without a qdisc both are zero.
func ClassesOf(q *chain.Qdisc, mtu int) (*broker.Classes, int, error) {
	if q == nil {
		return nil, 0, nil
	}
	made, err := q.InPort(mtu)
	if err == nil {
		err = checkMatches(made)
	}
	if err != nil {
		return nil, 0, err
	}
	c := &broker.Classes{}
	order := &c.Order
	if rate := max(made.Rate, made.Ceil); rate > 0 {
		order.Rate, order.Burst = uint64(rate), uint32(made.Burst)
	}
	for i, queue := range made.Queues() {
		order.Class[i] = classOf(queue)
		order.Classes++
	}
	if len(made.Classes) > 0 {
		order.Scheduler = uint32(slices.Index(broker.Schedulers[:], made.Kind))
	}
	for i := range made.Classes {
		class := &made.Classes[i]
		c.Names = append(c.Names, class.Name)
		match(&order.Class[i], class)
		grant(&order.Class[i], class, made.Kind)
	}
	return c, made.Slots(), order.Check()
}

// classOf is the queue of a class.
func classOf(q *chain.Qdisc) wire.Class {
	c := wire.Class{Discipline: uint8(slices.Index(broker.Disciplines[:], q.Kind)), Limit: uint32(q.Limit)}
	switch q.Kind {
	case "codel", "fq_codel":
		c.TargetNS, c.IntervalNS = uint32(q.Target), uint32(q.Interval)
		if *q.ECN {
			c.Flags |= wire.ClassECN
		}
	case "slot":
		c.TargetNS, c.IntervalNS = uint32(q.Slot), uint32(q.Offset)
		if q.Clock == chain.ClockRealtime {
			c.Flags |= wire.ClassRealtime
		}
	}
	return c
}

// checkMatches checks what no bits of the order stand for. A chain file has been checked, but a
// claim of a pod may hold anything.
func checkMatches(q *chain.Qdisc) error {
	if len(q.Classes) > wire.ClassesMax {
		return fmt.Errorf("%d traffic classes: a port has at most %d", len(q.Classes), wire.ClassesMax)
	}
	for i, c := range q.Classes {
		if slices.ContainsFunc(q.Classes[:i], func(other chain.Class) bool { return other.Name == c.Name }) {
			return fmt.Errorf("traffic class %q is there twice", c.Name) // metrics tell classes apart by their names
		}
		for _, numbers := range [][]int{c.DSCP, c.PCP} {
			if slices.ContainsFunc(numbers, func(n int) bool { return n < 0 }) {
				return fmt.Errorf("traffic class %q: a DSCP or priority below 0", c.Name)
			}
		}
	}
	return nil
}

// match says which packets are of a class.
func match(c *wire.Class, class *chain.Class) {
	for _, n := range class.DSCP {
		c.DSCP |= 1 << n
	}
	for _, n := range class.PCP {
		c.PCP |= 1 << n
	}
	if class.Meta != nil {
		c.Flags |= wire.ClassMeta
		c.Meta = uint32(*class.Meta)
	}
}

// grant says how much a class may send.
func grant(c *wire.Class, class *chain.Class, kind string) {
	c.Rate, c.Ceil = uint64(class.Rate), uint64(class.Ceil)
	switch kind {
	case "htb":
		c.Priority, c.Peak = uint8(class.Priority), uint64(class.Burst)
	case "hfsc":
		c.Peak, c.PeakNS = uint64(class.Peak), uint32(class.PeakTime)
	}
}

// SetClasses gives the ports of a link their traffic classes, as the qdiscs of s say, and the
// link enough packet buffers for what waits. The link is one of shared memory, or was one when
// its ports were opened: they keep their queues. An error means that a port cannot queue so.
func SetClasses(l *broker.Link, s transport.Spec) error {
	for i := range l.Ends {
		e := &l.Ends[i]
		q, slots := (*chain.Qdisc)(nil), 0
		for _, end := range s.Ends {
			if end.Function == e.Function && end.Name == e.Port {
				q = cmp.Or(end.Shape, s.Shape)
			}
		}
		var err error
		if e.Classes, slots, err = ClassesOf(q, s.MTU); err != nil {
			return err
		}
		l.Slots = max(l.Slots, slots)
	}
	if l.Slots > 0 {
		l.Slots = max(l.Slots, broker.DefaultSlots)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

// Defaults of CoDel (RFC 8289, section 4), which are also the kernel's.
const (
	DefaultTarget   = units.Duration(5 * time.Millisecond)
	DefaultInterval = units.Duration(100 * time.Millisecond)
)

// Defaults and bounds of a port that queues what it sends itself.
const (
	queueLimit      = 512 // packets, of a port without classes
	classLimit      = 256 // packets, of each class
	sfqLimit        = 127 // packets: the kernel's (sch_sfq.c)
	defaultWait     = units.Duration(20 * time.Millisecond)
	burstTime       = 4 * time.Millisecond
	slotBytes       = 256 // bytes of a FIFO by bytes for which a buffer is set aside
	moreSlots       = 256 // buffers in addition to those of packets that wait
	maxSlots        = 8192
	slotStep        = 64
	ethernetHeader  = 14 // bytes
	maxQueuePackets = maxSlots - moreSlots
)

// UserOnly reports whether only a port that libdray opens can have the discipline: the
// kernel has no such kind, or not its classes.
func (q *Qdisc) UserOnly() bool {
	if q == nil {
		return false
	}
	return len(q.Classes) > 0 || slices.ContainsFunc(q.Kinds(), func(kind string) bool { return slices.Contains(userKinds, kind) })
}

// QueueFault is what a port that queues itself cannot do.
type QueueFault struct {
	Reason string // one clause
	Fix    string
}

func (f *QueueFault) Error() string { return f.Reason + ": " + f.Fix }

// InPort is the discipline as a port queues itself, with every default, for packets of
// mtu bytes of layer 3. The error is a *QueueFault.
func (q Qdisc) InPort(mtu int) (*Qdisc, error) {
	if q.Kind == "netem" {
		return nil, &QueueFault{"user space has no netem", "leave it out, or use a transport with interfaces, such as veth"}
	}
	if max(q.Rate, q.Ceil) > maxShapedRate {
		return nil, &QueueFault{"no rate is above 10Tbps", "lower the rate, or leave it out"}
	}
	frame := units.Bytes(mtu + ethernetHeader)
	if shaped := max(q.Rate, q.Ceil); shaped > 0 {
		q.Burst = cmp.Or(q.Burst, defaultBurst(shaped, frame))
	}
	q.fillQueues(frame)
	for _, queue := range q.Queues() {
		if queue.Kind == "bfifo" && queue.Limit < int(frame) {
			return nil, &QueueFault{fmt.Sprintf("a bfifo of %d bytes has no room for a frame of %d", queue.Limit, frame), "raise its limit"}
		}
	}
	if n := q.waiting(); n > maxQueuePackets {
		return nil, &QueueFault{fmt.Sprintf("limits of %d packets in sum (%d bytes of a bfifo count as one) are more than the %d for which a port has memory",
			n, slotBytes, maxQueuePackets), "lower the limits"}
	}
	return &q, nil
}

// fillQueues fills in the queues of a discipline and its classes.
func (q *Qdisc) fillQueues(frame units.Bytes) {
	switch {
	case len(q.Classes) > 0:
		q.Classes = slices.Clone(q.Classes)
		for i := range q.Classes {
			c := &q.Classes[i]
			if q.Kind == "htb" {
				c.Ceil = cmp.Or(c.Ceil, c.Rate)
				c.Burst = cmp.Or(c.Burst, defaultBurst(c.Ceil, frame))
			}
			c.Child = queueOf(c.Child, classLimit, len(q.Classes), frame)
		}
	case q.Child != nil:
		q.Child = queueOf(q.Child, queueLimit, 1, frame)
	case q.Kind == "tbf":
		q.Latency = cmp.Or(q.Latency, defaultWait)
		bytes := float64(q.Rate)/8*time.Duration(q.Latency).Seconds() + float64(q.Burst)
		q.Child = &Qdisc{Kind: "bfifo", Limit: int(min(bytes, maxQueuePackets*slotBytes))}
	case q.Kind == "htb" || q.Kind == "hfsc":
		q.Child = queueOf(nil, queueLimit, 1, frame)
	default:
		*q = *queueOf(q, queueLimit, 1, frame)
	}
}

// queueOf is a queue with its defaults; nil: a pfifo. share is how many queues a port has.
func queueOf(given *Qdisc, limit, share int, frame units.Bytes) *Qdisc {
	q := Qdisc{Kind: "pfifo"}
	if given != nil {
		q = *given
	}
	switch q.Kind {
	case "bfifo":
		limit = min(limit*int(frame), maxQueuePackets/share*slotBytes)
	case "sfq":
		limit = sfqLimit
	case "codel", "fq_codel":
		q.Target, q.Interval = cmp.Or(q.Target, DefaultTarget), cmp.Or(q.Interval, DefaultInterval)
		if q.ECN == nil {
			marks := q.Kind == "fq_codel"
			q.ECN = &marks
		}
	case "slot":
		q.Clock = cmp.Or(q.Clock, ClockMonotonic)
	}
	q.Limit = cmp.Or(q.Limit, limit)
	return &q
}

// defaultBurst is a bucket of 4 ms, as for a kernel's timer, and at least of two frames: on a
// busy machine the library's thread waits as long for a CPU, and loses nothing.
func defaultBurst(rate units.Bitrate, frame units.Bytes) units.Bytes {
	return min(max(units.Bytes(float64(rate)/8*burstTime.Seconds()), 2*frame), math.MaxUint32)
}

// Queues are the queues of a discipline from InPort, one for each class.
func (q *Qdisc) Queues() []*Qdisc {
	if len(q.Classes) == 0 {
		return []*Qdisc{cmp.Or(q.Child, q)}
	}
	var all []*Qdisc
	for i := range q.Classes {
		all = append(all, q.Classes[i].Child)
	}
	return all
}

// waiting is the most packets that wait in the queues.
func (q *Qdisc) waiting() int {
	sum := 0
	for _, queue := range q.Queues() {
		n := queue.Limit
		if queue.Kind == "bfifo" {
			n = (n + slotBytes - 1) / slotBytes
		}
		sum += n
	}
	return sum
}

// Slots are the packet buffers that a port needs for a discipline from InPort.
func (q *Qdisc) Slots() int {
	slots := (q.waiting() + moreSlots + slotStep - 1) / slotStep * slotStep
	return min(slots, maxSlots)
}

// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// sender knows how much a generator offered. A shortfall for lack of a CPU is not the
// link's fault, so it supports no "missed".
type sender struct {
	limit   string  // the requirement, as in the chain
	wanted  float64 // required offer
	bits    float64 // least rate on the wire, bit/s
	all     []record.Trial
	unit    Unit
	format  func(float64) string
	offered func(record.Trial) float64
	held    func(record.Trial) (times uint64, long time.Duration) // by its port
}

// didItsPart reports whether a trial is evidence about the link. Its sender offered
// enough, or its port or the link's own shaper held it back, or nothing arrived at all.
// Or it was undisturbed, and the same generator offered as much elsewhere in the run.
func (s sender) didItsPart(t record.Trial) bool {
	if t.Delivery == nil || t.Delivery.Received+t.Delivery.ReceiverDrops == 0 {
		return true
	}
	return s.offered(t) >= s.wanted || s.heldBack(t) || shapedBelow(t, s.bits) || !disturbed(t) && s.elsewhere(t)
}

// heldBack reports whether the port kept the sender from offering enough: it would have
// at the rate of the time in which the port took packets. A generator that is slower
// than that is its own limit, even if the port was full now and then.
func (s sender) heldBack(t record.Trial) bool {
	times, long := s.held(t)
	if times == 0 || long == 0 {
		return times > 0 // a record without the time
	}
	free := t.Duration - long
	return free <= 0 || s.offered(t)*t.Duration.Seconds()/free.Seconds() >= s.wanted
}

// disturbed reports whether the machine kept the generator from its CPU.
func disturbed(t record.Trial) bool {
	return slices.ContainsFunc(t.Marks, func(m string) bool {
		return m == record.MarkLate || m == record.MarkBusy || m == record.MarkStolen || m == record.MarkOversubscribed
	})
}

func (s sender) elsewhere(t record.Trial) bool {
	return slices.ContainsFunc(s.all, func(o record.Trial) bool {
		return o.Quantity == t.Quantity && o.Instrument.Name == t.Instrument.Name && o.Delivery != nil &&
			o.Delivery.DatagramBytes == t.Delivery.DatagramBytes && s.offered(o) >= s.wanted
	})
}

// excuse judges a miss again, only by trials whose sender did its part, and by all that
// the link delivered in them.
func (s sender) excuse(level float64, f Finding, trials []record.Trial, delivered func(record.Trial) float64) Finding {
	r := &rate{unit: s.unit, format: s.format, limit: s.limit}
	for _, t := range trials {
		if s.didItsPart(t) {
			r.add(t, delivered(t))
		}
	}
	if len(r.trials) < MinTrials {
		return s.bound(f, trials)
	}
	again, e, ok := r.estimate(level)
	if !ok {
		again.Rejected = f.Rejected
		return again
	}
	if again = r.atLeast(again, e, s.wanted); again.Verdict == Missed {
		again.Rejected = f.Rejected
		return again
	}
	f.Verdict, f.Bound, f.more = NotMeasurable, none(), unclear
	f.Reason = fmt.Sprintf("the link delivered %s, but the receiving program was too slow to read it all", s.format(e.Mean))
	f.Needs = "a receiver that keeps up with " + s.limit + ": less other work on the machine, or more or faster cores"
	return f
}

// bound states that the generator itself is the limit.
func (s sender) bound(f Finding, trials []record.Trial) Finding {
	f.Verdict, f.Bound, f.more = NotMeasurable, none(), 0
	f.Reason = "generator-bound: the sender itself did not offer " + s.limit
	f.Needs = "a sender that can offer " + s.limit + ": more or faster cores"
	if slices.ContainsFunc(trials, disturbed) {
		f.Reason += ", because the machine was busy with other work"
		f.Needs = "an idle machine: stop other programs and measure again"
	}
	return f
}

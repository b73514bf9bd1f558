// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/chain"
)

// rate is a set of trials with one rate each.
type rate struct {
	trials   []record.Trial
	values   []float64
	rejected []string
	unit     Unit
	format   func(float64) string
	limit    string // the requirement, exactly as the chain has it
}

func (r *rate) add(t record.Trial, v float64) {
	r.trials = append(r.trials, t)
	r.values = append(r.values, v)
}

func (r *rate) reject(t record.Trial, why string) {
	r.rejected = append(r.rejected, t.ID+": "+why)
}

// estimate starts the finding; ok is false where it is complete already.
func (r *rate) estimate(level float64) (f Finding, e stats.Estimate, ok bool) {
	f = newFinding(r.trials, r.rejected)
	if len(r.values) < MinTrials {
		return tooFewTrials(f), e, false
	}
	e, err := stats.MeanAt(level, r.values)
	if err != nil {
		f.Reason, f.Needs = err.Error(), "more trials"
		return f, e, false
	}
	f.Measured = figure(e.Mean, r.unit, r.format(e.Mean))
	return f, e, true
}

// atLeast decides whether a mean reaches a floor.
func (r *rate) atLeast(f Finding, e stats.Estimate, floor float64) Finding {
	f.badness = -e.Lower
	switch {
	case e.Lower >= floor:
		f.Verdict, f.Bound = Met, r.floor(e.Lower)
		f.Reason = "even the lower bound reaches " + r.limit
	case e.Upper < floor:
		f.Verdict, f.Bound = Missed, r.ceiling(e.Upper)
		f.Reason = "even the upper bound stays below " + r.limit
	default:
		f.Bound = r.between(e)
		f.Reason, f.Needs, f.more = r.undecided(e, floor)
	}
	return f
}

// atMost decides whether a mean stays under a ceiling.
func (r *rate) atMost(f Finding, e stats.Estimate, ceiling float64) Finding {
	f.badness = e.Upper
	switch {
	case e.Upper <= ceiling:
		f.Verdict, f.Bound = Met, r.ceiling(e.Upper)
		f.Reason = "even the upper bound stays within " + r.limit
	case e.Lower > ceiling:
		f.Verdict, f.Bound = Missed, r.floor(e.Lower)
		f.Reason = "even the lower bound exceeds " + r.limit
	default:
		f.Bound = r.between(e)
		f.Reason, f.Needs, f.more = r.undecided(e, ceiling)
	}
	return f
}

func (r *rate) floor(v float64) Figure   { return atLeast(v, r.unit, r.format(v)) }
func (r *rate) ceiling(v float64) Figure { return atMost(v, r.unit, r.format(v)) }

// between is the interval of an estimate. No rate is negative, though an
// estimate of few trials may be.
func (r *rate) between(e stats.Estimate) Figure {
	return between(max(0, e.Lower), max(0, e.Upper), r.unit, fmt.Sprintf("%s … %s", r.format(e.Lower), r.format(e.Upper)))
}

func (r *rate) undecided(e stats.Estimate, limit float64) (reason, needs string, more float64) {
	reason = fmt.Sprintf("%s lies between the bounds of %d trials", r.limit, e.N)
	if k, ok := e.TrialsToResolve(limit); ok {
		each := span(r.trials).Seconds() / float64(len(r.trials))
		return reason, fmt.Sprintf("about %d trials of this length (%s)", k, seconds(float64(k)*each)), float64(k) / float64(e.N)
	}
	return reason, "a link whose rate does not lie on the requirement, or trials that differ less", 0
}

func minBitrate(floor chain.Bitrate) func(float64, []record.Trial) Finding {
	return func(level float64, trials []record.Trial) Finding {
		r := goodput(trials, false)
		r.limit = floor.String()
		f, e, ok := r.estimate(level)
		if !ok {
			return f
		}
		return r.atLeast(f, e, float64(floor))
	}
}

func maxBitrate(ceiling chain.Bitrate) func(float64, []record.Trial) Finding {
	return func(level float64, trials []record.Trial) Finding {
		r := goodput(trials, true)
		r.limit = ceiling.String()
		f, e, ok := r.estimate(level)
		if !ok {
			return f
		}
		return r.atMost(f, e, float64(ceiling))
	}
}

// goodput collects what TCP carried. A link that carries nothing misses every
// floor, but says nothing of a ceiling: whether nothing counts is the caller's.
func goodput(trials []record.Trial, needFlow bool) *rate {
	r := &rate{unit: UnitBitrate, format: FormatBitrate}
	for _, t := range trials {
		switch {
		case t.Throughput == nil:
			r.reject(t, noResult(t))
		case needFlow && t.Throughput.BitsPerSecond == 0:
			r.reject(t, "nothing was carried, so that no ceiling was tried")
		default:
			r.add(t, float64(t.Throughput.BitsPerSecond))
		}
	}
	return r
}

// packetRate judges packets received. A sender that never offered the rate
// bounds itself, not the link, unless the link's shaper or the port held it
// back, or the same generator offered that rate elsewhere in the run.
func packetRate(floor chain.PacketRate, all []record.Trial) func(float64, []record.Trial) Finding {
	return func(level float64, trials []record.Trial) Finding {
		r := &rate{unit: UnitPacketRate, format: FormatPacketRate, limit: floor.String()}
		offered, able := true, false
		for _, t := range trials {
			if t.Delivery == nil {
				r.reject(t, noResult(t))
				continue
			}
			r.add(t, carried(t))
			offered = offered && t.Delivery.SentRate >= uint64(floor)
			able = able || t.OneWay != nil && t.OneWay.Held > 0
			able = able || shapedBelow(t, float64(floor)*frameBits(t.Delivery)) || offeredElsewhere(t, all, floor)
		}
		f, e, ok := r.estimate(level)
		if !ok {
			return f
		}
		f = r.atLeast(f, e, float64(floor))
		if f.Verdict == Missed && !offered && !able {
			f.Verdict, f.Bound = NotMeasurable, none()
			f.Reason = "generator-bound: the sender itself did not offer " + floor.String()
			f.Needs = "a sender that can offer " + floor.String() + ": more or faster cores"
		}
		return f
	}
}

// carried is what the link delivered, in packets per second: what the receiver
// took, and what it was too slow to take from its socket.
func carried(t record.Trial) float64 {
	v := float64(t.Delivery.PacketRate)
	if s := t.Duration.Seconds(); s > 0 {
		v += float64(t.Delivery.ReceiverDrops) / s
	}
	return v
}

// frameBits is a datagram's size as qdiscs count it: its frame without the
// check sequence.
func frameBits(d *record.Delivery) float64 {
	return 8 * math.Max(60, float64(d.FrameBytes-4))
}

func offeredElsewhere(t record.Trial, all []record.Trial, floor chain.PacketRate) bool {
	for _, o := range all {
		if o.Quantity == t.Quantity && o.Instrument.Name == t.Instrument.Name && o.Delivery != nil &&
			o.Delivery.DatagramBytes == t.Delivery.DatagramBytes && o.Delivery.SentRate >= uint64(floor) {
			return true
		}
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/units"
)

// delay judges a one-way delay, or its variation, from the stamps in a stream's
// packets: each sample is the time from handing a packet to the port until the receiver
// had it. A packet that the link lost is beyond every bound. One that reached the
// receiver's socket, but not its program, may have been late: it counts against "met",
// and not towards "missed".
//
// A generator that wakes late is not the link's fault, so its packets count from when
// they were sent. But if the port made the sender wait, that wait is the port's. Then
// packets count against "met" from when they were due, and so do the packets never sent
// because of it.
type delay struct {
	link      Link
	pct       float64
	budget    int64 // ns
	what      string
	variation bool
}

// judge decides "met" from trials under the link's declared load, and "missed" also
// from trials under less.
func (d delay) judge(level float64, trials []record.Trial) Finding {
	accepted, lighter, rejected := d.sort(trials)
	f := newFinding(accepted.trials, rejected)
	if len(accepted.trials) >= MinTrials {
		f = d.describe(f, accepted)
		if f = d.decide(level, f, accepted); f.Verdict != NotMeasurable {
			return d.excuse(level, f, accepted)
		}
	}
	both := accepted.plus(lighter)
	if len(both.trials) >= MinTrials && len(lighter.trials) > 0 {
		g := d.describe(newFinding(both.trials, rejected), both)
		if g = d.decide(level, g, both); g.Verdict == Missed {
			g.Reason += ", even though the load was lighter than declared"
			return d.excuse(level, g, both)
		}
	}
	if len(accepted.trials) < MinTrials {
		return tooFewTrials(f)
	}
	return f
}

// sample is a set of trials with their distributions: sure has certain delays of the
// link, careful all possible ones.
type sample struct {
	trials        []record.Trial
	sure, careful []*stats.Dist
}

func (s sample) plus(o sample) sample {
	return sample{slices.Concat(s.trials, o.trials), slices.Concat(s.sure, o.sure), slices.Concat(s.careful, o.careful)}
}

func (s *sample) add(o sample) {
	s.trials, s.sure, s.careful = append(s.trials, o.trials...), append(s.sure, o.sure...), append(s.careful, o.careful...)
}

func (s sample) pool() *stats.Dist { return stats.Pool(s.sure...) }

// sort separates the trials under the declared load from trials that missed it, and
// from trials that are no evidence.
func (d delay) sort(trials []record.Trial) (accepted, lighter sample, rejected []string) {
	for _, t := range trials {
		one, err := d.sample(t)
		if err != nil {
			rejected = append(rejected, t.ID+": "+err.Error())
			continue
		}
		offered := t.Delivery.OfferedBits
		switch {
		case d.link.passive && !d.link.loadedBy(t.Delivery):
			rejected = append(rejected, t.ID+": "+d.link.lighter(t.Delivery))
			lighter.add(one)
		case t.Quantity == record.QStream && !d.link.live && !within5(offered, uint64(d.link.Load)):
			rejected = append(rejected, fmt.Sprintf("%s: its load was %s, but the link's load is %s", t.ID, FormatBitrate(float64(offered)), d.link.Load))
		case !reached(t.Delivery):
			rejected = append(rejected, t.ID+": "+missedRate(t.Delivery))
			if t.Delivery.SentBits < offered {
				lighter.add(one)
			}
		default:
			accepted.add(one)
		}
	}
	return accepted, lighter, rejected
}

func (d delay) sample(t record.Trial) (sample, error) {
	if t.OneWay == nil || t.Delivery == nil {
		return sample{}, errors.New(noResult(t))
	}
	certain, careful := t.OneWay.Latency, t.OneWay.Latency
	least := t.OneWay.Min
	if t.OneWay.Held > 0 {
		careful = t.OneWay.Intended
	}
	if c := t.OneWay.Clocks; c != nil {
		careful = c.Latest
	}
	if c := t.OneWay.Coarse; c != nil {
		certain, least = c.Least, c.Min
	}
	sure, err1 := d.dist(t, certain, least)
	bound, err2 := d.dist(t, careful, t.OneWay.Min)
	if err := errors.Join(err1, err2); err != nil {
		return sample{}, err
	}
	if sure.Count() == 0 {
		return sample{}, errors.New("no samples")
	}
	return sample{[]record.Trial{t}, []*stats.Dist{sure}, []*stats.Dist{bound}}, nil
}

// dist is the distribution of delays or, above the least one, of their variation.
func (d delay) dist(t record.Trial, h record.Histogram, least time.Duration) (*stats.Dist, error) {
	lost := t.Delivery.Lost - min(t.Delivery.Lost, t.Delivery.ReceiverDrops)
	if t.Passive {
		lost = sampledLoss(t)
	}
	if c := t.OneWay.Clocks; c != nil && d.variation {
		return stats.NewDist(c.Above, lost, maybeLate(t))
	}
	dist, err := stats.NewDist(h, lost, maybeLate(t))
	if err != nil || !d.variation {
		return dist, err
	}
	return dist.Variation(int64(least)), nil
}

// maybeLate is how many packets may have been late: those that the receiver was too
// slow to read, and, if the port made the sender wait, those that it had no time to
// send.
func maybeLate(t record.Trial) uint64 {
	if t.OneWay.Held == 0 {
		return t.Delivery.ReceiverDrops
	}
	return t.OneWay.Unsent + t.Delivery.ReceiverDrops
}

// describe fills in the point estimate.
func (d delay) describe(f Finding, s sample) Finding {
	pool := s.pool()
	v, err := pool.Quantile(d.pct)
	switch {
	case err == nil:
		f.Measured = figure(float64(v), UnitTime, fmt.Sprintf("%s %s at p%g", FormatDuration(float64(v)), d.what, d.pct))
		f.Measured.Percentile = d.pct
		if d.between(s) {
			f.Measured = d.midway(f.Measured, v, s)
		}
	case pool.Lost() > 0:
		f.Measured = unknown(UnitTime, fmt.Sprintf("%d of %d lost", pool.Lost(), pool.Count()))
	default:
		f.Measured = unknown(UnitTime, fmt.Sprintf("p%g refused: %s", d.pct, plural(int(pool.Count()), "sample")))
	}
	return f
}

func (d delay) decide(level float64, f Finding, s sample) Finding {
	tail := (100 - d.pct) / 100
	budget := units.Duration(d.budget)
	upper, err := stats.UpperQuantile(level, s.careful, tail)
	if err != nil {
		f.Reason, f.Needs = err.Error(), "more trials"
		return f
	}
	lower, err := stats.LowerQuantile(level, s.sure, tail)
	if err != nil {
		f.Reason, f.Needs = err.Error(), "more trials"
		return f
	}
	count := s.pool().Count()
	enough := count >= stats.SamplesFor(d.pct)
	switch {
	case lower > float64(d.budget):
		f.Verdict, f.badness = Missed, lower
		f.Bound = d.bound(atLeast, lower)
		f.Reason = fmt.Sprintf("the %s exceeds %s for more than %s of the packets", d.what, budget, share(tail))
		if math.IsInf(lower, 1) {
			f.Bound = unknown(UnitTime, "lost")
			f.Reason = "too many packets never arrived"
		}
	case enough && upper <= float64(d.budget):
		f.Verdict, f.badness = Met, upper/float64(d.budget)
		f.Bound = d.bound(atMost, upper)
		f.Reason = fmt.Sprintf("the %s stays within %s", d.what, budget)
	default:
		f.badness = upper
		if !math.IsInf(upper, 1) {
			f.Bound = d.bound(atMost, upper)
		}
		f.Reason, f.Needs, f.more = d.undecided(level, s, tail, count)
		if best, err := stats.UpperQuantile(level, s.sure, tail); err == nil && enough && d.between(s) && best <= float64(d.budget) {
			f.Reason, f.Needs, f.more = clocksUnclear(budget.String(), upper)
		}
		if d.between(s) {
			f = d.round(level, f, s)
		}
	}
	return f
}

func (d delay) bound(side func(float64, Unit, string) Figure, ns float64) Figure {
	f := side(ns, UnitTime, FormatDuration(ns))
	f.Percentile = d.pct
	return f
}

// undecided says why neither side was proven, what would prove one, and what multiple
// of the trials that is.
func (d delay) undecided(level float64, s sample, tail float64, count int64) (reason, needs string, more float64) {
	p, err := stats.ClusteredAt(level, stats.PossiblyAbove(s.careful, d.budget))
	if err != nil {
		return err.Error(), "more trials", unclear
	}
	if missing := maybeLateOf(s.trials); p.Value > tail && float64(missing) > p.N*tail/2 {
		return fmt.Sprintf("of %.0f packets that were due, %d were not sent or not read in time, so their delay is unknown", p.N, missing),
			"a sender and receiver that keep up with the load: less other work on the machine, or more cores", unclear
	}
	need := stats.SamplesFor(d.pct)
	reason = fmt.Sprintf("%s: p%g needs %d", plural(int(count), "sample"), d.pct, need)
	if count >= need {
		reason = fmt.Sprintf("%s of %s exceed %s: too close to the allowed share, %s, to decide",
			share(p.Value), plural(int(count), "packet"), units.Duration(d.budget), share(tail))
	}
	if p.Value > tail && count >= need {
		return fmt.Sprintf("%s of %s exceed %s, and only %s may, but trials differ too much to rule out chance",
			share(p.Value), plural(int(count), "packet"), units.Duration(d.budget), share(tail)), fmt.Sprintf("more than %s", plural(len(s.trials), "trial")), unclear
	}
	if n, ok := p.SamplesToProve(tail); ok {
		need = max(need, int64(math.Ceil(n)))
	}
	return reason, amount(float64(need), float64(count), s.trials, "sample"), float64(need) / float64(count)
}

// span is the total measuring time of trials.
func span(trials []record.Trial) time.Duration {
	var sum time.Duration
	for _, t := range trials {
		sum += max(0, t.Duration)
	}
	return sum
}

func maybeLateOf(trials []record.Trial) (n uint64) {
	for _, t := range trials {
		n += maybeLate(t)
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/stats"
)

// delay judges a one-way delay, or its variation, from round trips.
//
// No direction takes longer than the whole round trip, so a round trip within
// the budget proves both directions. For the opposite, a round trip of more
// than twice the budget proves only that one of the directions was late: of the
// samples that are that late each direction may have caused half. So the
// requirement is missed when more than twice the allowed share of round trips
// exceeds twice the budget.
//
// For variation, RTT(i)−RTTmin bounds D(i)−Dmin in the same way, given that the
// fastest way forth and the fastest way back meet in one of the samples.
type delay struct {
	link      Link
	pct       float64
	budget    int64 // ns
	what      string
	variation bool
}

// judge decides "met" from the trials that ran under the load that the link
// declares, and "missed" also from those that ran under less.
func (d delay) judge(trials []record.Trial) Finding {
	accepted, lighter, rejected := d.sort(trials)
	f := newFinding(accepted.trials, rejected)
	if len(accepted.trials) >= MinTrials {
		f = d.describe(f, accepted)
		if f = d.decide(f, accepted); f.Verdict != NotMeasurable {
			return f
		}
	}
	both := accepted.plus(lighter)
	if len(both.trials) >= MinTrials && len(lighter.trials) > 0 {
		g := d.describe(newFinding(both.trials, rejected), both)
		if g = d.decide(g, both); g.Verdict == Missed {
			g.Reason += ", though the load was lighter than declared"
			return g
		}
	}
	if len(accepted.trials) < MinTrials {
		return tooFewTrials(f)
	}
	return f
}

// sample is a set of trials with their distributions.
type sample struct {
	trials []record.Trial
	dists  []*stats.Dist
}

func (s sample) plus(o sample) sample {
	return sample{append(slices.Clone(s.trials), o.trials...), append(slices.Clone(s.dists), o.dists...)}
}

func (s sample) pool() *stats.Dist { return stats.Pool(s.dists...) }

// sort separates the trials under the declared load from those that missed it,
// and from those that are no evidence.
func (d delay) sort(trials []record.Trial) (accepted, lighter sample, rejected []string) {
	for _, t := range trials {
		dist, err := d.dist(t)
		if err != nil {
			rejected = append(rejected, t.ID+": "+err.Error())
			continue
		}
		offered, achieved := loadOf(t)
		switch {
		case !within5(offered, uint64(d.link.Load)):
			rejected = append(rejected, fmt.Sprintf("%s: it ran under %s, the link's load is %s", t.ID, FormatBitrate(float64(offered)), d.link.Load))
		case !within5(achieved, offered):
			rejected = append(rejected, fmt.Sprintf("%s: the load was %s instead of %s", t.ID, FormatBitrate(float64(achieved)), FormatBitrate(float64(offered))))
			if achieved < offered {
				lighter = lighter.plus(sample{[]record.Trial{t}, []*stats.Dist{dist}})
			}
		default:
			accepted = accepted.plus(sample{[]record.Trial{t}, []*stats.Dist{dist}})
		}
	}
	return accepted, lighter, rejected
}

func (d delay) dist(t record.Trial) (*stats.Dist, error) {
	if t.Latency == nil {
		return nil, errors.New(noResult(t))
	}
	dist, err := stats.NewDist(t.Latency.Histogram, t.Latency.Lost, notSent(t.Latency))
	if err != nil {
		return nil, err
	}
	if dist.Count() == 0 {
		return nil, errors.New("no samples")
	}
	if !d.variation {
		return dist, nil
	}
	least := int64(t.Latency.MinRTT)
	if low, _, ok := dist.Range(); ok && (least <= 0 || least > low) {
		least = low
	}
	return dist.Variation(least), nil
}

// describe fills in the point estimate.
func (d delay) describe(f Finding, s sample) Finding {
	pool := s.pool()
	v, err := pool.Quantile(d.pct)
	switch {
	case err == nil:
		f.Measured = fmt.Sprintf("%s %s at p%g", FormatDuration(float64(v)), d.what, d.pct)
	case pool.Lost() > 0:
		f.Measured = fmt.Sprintf("%d of %d lost", pool.Lost(), pool.Count())
	default:
		f.Measured = fmt.Sprintf("p%g refused: %s", d.pct, plural(int(pool.Count()), "sample"))
	}
	return f
}

func (d delay) decide(f Finding, s sample) Finding {
	tail := (100 - d.pct) / 100
	budget := chain.Duration(d.budget)
	upper, err := stats.UpperQuantile(s.dists, tail)
	if err != nil {
		f.Reason, f.Needs = err.Error(), "more trials"
		return f
	}
	lower, err := stats.LowerQuantile(s.dists, 2*tail)
	if err != nil {
		f.Reason, f.Needs = err.Error(), "more trials"
		return f
	}
	count := s.pool().Count()
	enough := count >= stats.SamplesFor(d.pct)
	switch {
	case lower/2 > float64(d.budget):
		f.Verdict, f.badness = Missed, lower
		f.Bound = "≥ " + FormatDuration(lower/2) + " one way"
		f.Reason = fmt.Sprintf("even half of the %s exceeds %s", d.what, budget)
		if math.IsInf(lower, 1) {
			f.Bound = "no answer"
			f.Reason = "too many requests were never answered"
		}
	case enough && upper <= float64(d.budget):
		f.Verdict, f.badness = Met, upper/float64(d.budget)
		f.Bound = "≤ " + FormatDuration(upper)
		f.Reason = fmt.Sprintf("the whole %s stays within %s", d.what, budget)
	default:
		f.badness = upper
		if !math.IsInf(upper, 1) {
			f.Bound = "≤ " + FormatDuration(upper)
		}
		f.Reason, f.Needs = d.undecided(s, tail, count)
	}
	return f
}

// undecided says why neither side was proven, and what would prove one.
func (d delay) undecided(s sample, tail float64, count int64) (reason, needs string) {
	p, err := stats.Clustered(stats.PossiblyAbove(s.dists, d.budget))
	if err != nil {
		return err.Error(), "more trials"
	}
	if missing := missingOf(s.trials); p.Value > tail && missing > 0 {
		return fmt.Sprintf("a lost message ended the ping-pong early, so that %s were never sent", plural(int(missing), "request")),
			"a link that loses nothing while latency is measured"
	}
	if p.Value > tail {
		return fmt.Sprintf("the whole %s exceeds %s but half of it is not proven to: which way it is spent is not known", d.what, chain.Duration(d.budget)),
			"one-way time stamps"
	}
	need := stats.SamplesFor(d.pct)
	reason = fmt.Sprintf("%s: p%g takes %d", plural(int(count), "sample"), d.pct, need)
	if count >= need {
		reason = fmt.Sprintf("%s of %s exceed %s: too close to the share allowed to decide",
			share(p.Value), plural(int(count), "sample"), chain.Duration(d.budget))
	}
	if n, ok := p.SamplesToProve(tail); ok {
		need = max(need, int64(math.Ceil(n)))
	}
	return reason, amount(float64(need), float64(count), s.trials, "sample")
}

func loadOf(t record.Trial) (offered, achieved uint64) {
	if t.Load == nil {
		return 0, 0
	}
	return t.Load.Offered, t.Load.Achieved
}

// span is the time that trials measured for.
func span(trials []record.Trial) time.Duration {
	var sum time.Duration
	for _, t := range trials {
		sum += max(0, t.Duration)
	}
	return sum
}

// notSent is how many requests were due after the one that was never answered
// had stopped the ping-pong.
func notSent(l *record.Latency) uint64 {
	return uint64(math.Max(0, l.Stalled.Seconds()*float64(l.Rate)))
}

func missingOf(trials []record.Trial) (n uint64) {
	for _, t := range trials {
		n += notSent(t.Latency)
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// rate is a set of trials with one rate each.
type rate struct {
	trials   []record.Trial
	values   []float64
	rejected []string
	unit     Unit
	format   func(float64) string
	limit    string // the requirement, as in the chain
}

func (r *rate) add(t record.Trial, v float64) {
	r.trials = append(r.trials, t)
	r.values = append(r.values, v)
}

func (r *rate) reject(t record.Trial, why string) {
	r.rejected = append(r.rejected, t.ID+": "+why)
}

// estimate starts the finding; ok is false if it is already complete. The lower bound is
// from logarithms: three trials of 2, 4 and 6 Gbps do show that 10 Mbps is reached.
func (r *rate) estimate(level float64) (f Finding, e stats.Estimate, ok bool) {
	f = newFinding(r.trials, r.rejected)
	if len(r.values) < MinTrials {
		return tooFewTrials(f), e, false
	}
	e, err := stats.MeanAt(level, r.values)
	if err == nil {
		e.Lower, err = stats.LowerMean(level, r.values)
	}
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

// atMost decides whether a mean stays below a ceiling.
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

// between is the interval of an estimate. No rate is negative, but an estimate from few
// trials may be.
func (r *rate) between(e stats.Estimate) Figure {
	return between(max(0, e.Lower), max(0, e.Upper), r.unit, fmt.Sprintf("%s … %s", r.format(e.Lower), r.format(e.Upper)))
}

func (r *rate) undecided(e stats.Estimate, limit float64) (reason, needs string, more float64) {
	reason = fmt.Sprintf("%s lies between the bounds of %d trials", r.limit, e.N)
	if k, ok := e.TrialsToResolve(limit); ok {
		each := span(r.trials).Seconds() / float64(len(r.trials))
		return reason, fmt.Sprintf("about %d trials of this length (%s)", k, seconds(float64(k)*each)), float64(k) / float64(e.N)
	}
	return reason, "a rate further from the requirement, or trials that differ less", 0
}

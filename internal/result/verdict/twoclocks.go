// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/units"
)

// JudgeProbed judges records of a link that is measured by probes: their delays between the
// functions' packets, on one clock or on two, and losses of the functions' own packets. On two
// clocks, a delay is met only if its upper bounds meet it, and missed only if its lower bounds
// miss it.
func JudgeProbed(l plan.Link, trials []record.Trial) []Verdict {
	own := liveLink(l)
	own.probed, own.Requires.MTU = true, l.Requires.MTU
	return Judge(own, trials)
}

// between reports whether delays are of two clocks. Their variation needs no common one.
func (d delay) between(s sample) bool { return !d.variation && s.trials[0].OneWay.Clocks != nil }

// round finds a miss that no clock can hide. A round trip of more than twice the limit has at least
// one late direction. If more than twice the allowed share of round trips are such, then in
// one of the directions more than the allowed share of packets are late.
func (d delay) round(level float64, f Finding, s sample) Finding {
	var halves []*stats.Dist
	for _, t := range s.trials {
		if half, err := stats.NewDist(t.OneWay.Clocks.Halves, 0, 0); err == nil && half.Count() > 0 {
			halves = append(halves, half)
		}
	}
	share := 2 * (100 - d.pct) / 100
	if len(halves) < MinTrials || share >= 1 {
		return f
	}
	lower, err := stats.LowerQuantile(level, halves, share)
	if err != nil || lower <= float64(d.budget) {
		return f
	}
	f.Verdict, f.badness, f.Needs, f.more = Missed, lower, "", 0
	f.Bound = d.bound(atLeast, lower)
	f.Reason = fmt.Sprintf("half of the round trip exceeds %s, so this direction or the other does", units.Duration(d.budget))
	return f
}

// midway is a figure for a percentile that lies between two bounds. The lower is known.
func (d delay) midway(f Figure, low int64, s sample) Figure {
	high, err := stats.Pool(s.careful...).Quantile(d.pct)
	if err != nil {
		return f
	}
	mid, off := float64(low)/2+float64(high)/2, math.Max(0, float64(high)/2-float64(low)/2)
	m := figure(mid, UnitTime, fmt.Sprintf("%s ± %s %s at p%g", FormatDuration(mid), FormatDuration(off), d.what, d.pct))
	m.Percentile = d.pct
	return m
}

// clocksUnclear says that a requirement is undecided because two clocks have no known difference.
func clocksUnclear(budget string, upper float64) (reason, needs string, more float64) {
	reason = "the clocks of the two nodes are not known well enough to say whether it stays within " + budget
	if math.IsInf(upper, 1) {
		return reason, "fewer losses", 0
	}
	return reason, fmt.Sprintf("a limit of %s, or a shorter way back: the error is half of the least round trip", FormatDuration(upper)), 0
}

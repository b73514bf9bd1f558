// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Goal is a Search Goal of RFC 9971.
type Goal struct {
	Name string `json:"name"` // "NDR"
	// LossRatio is the Goal Loss Ratio: a trial with more loss is a high-loss trial.
	LossRatio float64 `json:"loss_ratio"`
	// ExceedRatio is the maximum share of trial time in high-loss trials.
	ExceedRatio float64 `json:"exceed_ratio"`
	// Trial is the Goal Final Trial Duration.
	Trial time.Duration `json:"trial"`
	// Initial is the Goal Initial Trial Duration, of the search's coarse first phase;
	// 0: that of Trial, as the RFC recommends.
	Initial time.Duration `json:"initial,omitempty"`
	// Sum is the Goal Duration Sum: full-length trial time that decides a load.
	Sum time.Duration `json:"sum"`
	// Width is the Goal Width: (upper bound − lower bound) / upper bound.
	Width float64 `json:"width"`
}

// The loss ratio of PDR, and the precision of the presets. The RFC recommends
// a width not below the loss ratio.
const (
	PDRLossRatio = 0.005
	defaultWidth = 0.005
)

// NDR is the goal of no loss, where half of the trials may fail.
func NDR(trial, sum time.Duration) Goal {
	return Goal{Name: "NDR", ExceedRatio: 0.5, Trial: trial, Sum: sum, Width: defaultWidth}
}

// PDR is the goal of a loss of at most 0.5 %, where half of the trials may fail.
func PDR(trial, sum time.Duration) Goal {
	return Goal{Name: "PDR", LossRatio: PDRLossRatio, ExceedRatio: 0.5, Trial: trial, Sum: sum, Width: defaultWidth}
}

// String describes a result of this goal: no rate may be called NDR without it.
func (g Goal) String() string {
	s := fmt.Sprintf("%s: loss ≤ %.4g %%, trials of %v", g.Name, 100*g.LossRatio, g.Trial)
	if g.Sum > g.Trial {
		s += fmt.Sprintf(", up to %v of them a load", g.Sum)
	}
	return s + fmt.Sprintf(", of which %.4g %% may lose more, width %.4g %%", 100*g.ExceedRatio, 100*g.Width)
}

func (g Goal) check() error {
	share := func(v float64) bool { return v >= 0 && v < 1 }
	switch {
	case !share(g.LossRatio):
		return fmt.Errorf("goal %s: loss ratio %g is not in [0, 1)", g.Name, g.LossRatio)
	case !share(g.ExceedRatio):
		return fmt.Errorf("goal %s: exceed ratio %g is not in [0, 1)", g.Name, g.ExceedRatio)
	case !(g.Width > 0 && g.Width < 1):
		return fmt.Errorf("goal %s: width %g is not in (0, 1)", g.Name, g.Width)
	case g.Trial <= 0 || g.Sum < g.Trial:
		return fmt.Errorf("goal %s: trials of %v and a sum of %v: need 0 < trial ≤ sum", g.Name, g.Trial, g.Sum)
	case g.Initial < 0 || g.Initial > g.Trial:
		return fmt.Errorf("goal %s: initial trials of %v are not between 0 and %v", g.Name, g.Initial, g.Trial)
	}
	return nil
}

// Class is the outcome of the trials at one load.
type Class int

// Classes of a load.
const (
	Undecided Class = iota
	LowerBound
	UpperBound
)

// sums are the trial times at one load, in seconds, by length and loss.
type sums struct {
	fullLow, fullHigh, shortLow, shortHigh float64
}

func (g Goal) sums(trials []Trial) (s sums) {
	for _, t := range trials {
		if t.Rejected != "" {
			continue
		}
		high, d := t.Outcome.LossRatio() > g.LossRatio, t.Duration.Seconds()
		switch full := t.Duration >= g.Trial; {
		case full && high:
			s.fullHigh += d
		case full:
			s.fullLow += d
		case high:
			s.shortHigh += d
		default:
			s.shortLow += d
		}
	}
	return s
}

// Classify is the Load Classification of RFC 9971 (appendix A): a load is an
// upper bound if no further trial within Sum could make it a lower one. It is a
// lower bound if no further trial could undo that. Rejected trials do not count.
// Short low-loss trials never make a lower bound; short high-loss trials make an
// upper bound to the extent that they exceed their share.
func (g Goal) Classify(trials []Trial) Class {
	s := g.sums(trials)
	balancing := s.shortLow * g.ExceedRatio / (1 - g.ExceedRatio)
	high := s.fullHigh + math.Max(0, s.shortHigh-balancing)
	whole := math.Max(high+s.fullLow, g.Sum.Seconds())
	// Durations are sums of decimal fractions: 10 × 0.1 s must be 1 s.
	tolerated := whole*g.ExceedRatio + 1e-9*whole
	switch {
	case whole-s.fullLow <= tolerated:
		return LowerBound
	case high > tolerated:
		return UpperBound
	}
	return Undecided
}

// ConditionalThroughput is the forwarding rate, packets/s, to be expected at a
// lower bound (RFC 9971, appendix B): the rate of the full-length trial at the
// exceed ratio's quantile of loss. Skipped trials count as total loss. It is 0
// without trials of full length.
func (g Goal) ConditionalThroughput(trials []Trial) float64 {
	var full []Trial
	sum := 0.0
	for _, t := range trials {
		if t.Rejected == "" && t.Duration >= g.Trial {
			full = append(full, t)
			sum += t.Duration.Seconds()
		}
	}
	if len(full) == 0 {
		return 0
	}
	slices.SortStableFunc(full, func(a, b Trial) int { return cmp.Compare(a.Outcome.LossRatio(), b.Outcome.LossRatio()) })
	whole := math.Max(g.Sum.Seconds(), sum)
	remaining := whole * (1 - g.ExceedRatio)
	loss := full[0].Outcome.LossRatio()
	for _, t := range full {
		if remaining <= 1e-9*whole {
			break
		}
		loss = t.Outcome.LossRatio()
		remaining -= t.Duration.Seconds()
	}
	if remaining > 1e-9*whole {
		loss = 1
	}
	return float64(full[0].Load) * (1 - loss)
}

// SPDX-License-Identifier: Apache-2.0

package search

import (
	"math"
	"slices"
	"time"
)

// ledger holds the trials of a search by their load.
type ledger struct {
	trials map[uint64][]Trial
	loads  []uint64 // ascending
}

func newLedger() *ledger { return &ledger{trials: map[uint64][]Trial{}} }

func (l *ledger) add(t Trial) {
	if i, found := slices.BinarySearch(l.loads, t.Load); !found {
		l.loads = slices.Insert(l.loads, i, t.Load)
	}
	l.trials[t.Load] = append(l.trials[t.Load], t)
}

func (l *ledger) at(load uint64) []Trial { return l.trials[load] }

// bounds are the relevant bounds of a goal: the lowest upper
// bound, and the highest lower bound below it; 0 if there is none.
func (l *ledger) bounds(g Goal) (lower, upper uint64) {
	for _, load := range l.loads {
		switch g.Classify(l.trials[load]) {
		case UpperBound:
			return lower, load
		case LowerBound:
			lower = load
		}
	}
	return lower, 0
}

// forwarded is the best forwarding rate seen at a load, packets/s, even if the
// sender fell short: it only decides where to look next.
func (l *ledger) forwarded(load uint64) float64 {
	best := 0.0
	for _, t := range l.trials[load] {
		if t.Rejected != "" && !t.Short {
			continue
		}
		best = math.Max(best, math.Min(float64(t.Load), float64(t.Outcome.Received)/t.Duration.Seconds()))
	}
	return best
}

// next is the load to measure for a target; step is how far, as a share, to go if
// nothing bounds the search. It is 0 if nothing is left to measure; reason then
// says why the target is not met, and is empty if it is.
func (s *controller) next(t *target, step float64) (load uint64, reason string) {
	lower, upper := s.loads.bounds(t.Goal)
	top := upper
	if s.ceiling > lower && (top == 0 || s.ceiling < top) {
		top = s.ceiling
	}
	if load := s.inherited(t, lower, top); load != 0 {
		return load, ""
	}
	switch {
	case lower == 0 && top == 0:
		return s.Max, ""
	case top == 0 && lower >= s.Max:
		return 0, ReasonMax
	case top == 0:
		return min(s.Max, above(lower, step)), ""
	case lower == 0 && top <= s.Min:
		return 0, s.irregular(top, upper, ReasonMin)
	case lower == 0:
		return s.below(top, step), ""
	case float64(top-lower) <= t.Width*float64(top)*(1+1e-9):
		return 0, s.irregular(top, upper, "")
	case top-lower <= 1:
		return 0, s.irregular(top, upper, ReasonResolved)
	}
	return s.between(lower, top, step), ""
}

// irregular is reason, or that the sender bounds the search.
func (s *controller) irregular(top, upper uint64, reason string) string {
	if top != upper {
		return ReasonSender
	}
	return reason
}

// inherited is a bound of the coarser target that this target has not judged yet.
// The lower one comes first: a later upper bound below it would invalidate it.
func (s *controller) inherited(t *target, lower, top uint64) uint64 {
	if t.coarser == nil || lower > 0 && top > 0 {
		return 0
	}
	low, high := s.loads.bounds(t.coarser.Goal)
	if low > lower && (top == 0 || low < top) && t.Classify(s.loads.at(low)) == Undecided {
		return low
	}
	if top == 0 && high > lower && t.Classify(s.loads.at(high)) == Undecided {
		return high
	}
	return 0
}

// above is a load increased by a share of itself.
func above(load uint64, share float64) uint64 {
	return max(load+1, uint64(math.Round(float64(load)/(1-share))))
}

// below is where to look for a lower bound: at the received rate, and further and
// further down if that fails.
func (s *controller) below(top uint64, step float64) uint64 {
	guess := float64(top) * (1 - step)
	if f := s.loads.forwarded(top); f > 0 {
		guess = math.Min(guess, math.Floor(f))
	}
	return min(top-1, max(s.Min, uint64(guess)))
}

// between divides the interval at its geometric mean. From a lower bound far from
// the upper one it goes up in growing steps instead: the received rate under
// overload is close to the capacity.
func (s *controller) between(lower, top uint64, step float64) uint64 {
	middle := uint64(math.Round(math.Sqrt(float64(lower) * float64(top))))
	return min(max(min(middle, above(lower, step)), lower+1), top-1)
}

// The loads that a search measures if outcomes are consistent: for its first
// goal, and for each further one, whose bounds are near the first goal's.
const (
	usualLoads   = 9
	furtherLoads = 4
)

// Estimate is the approximate duration of a search's trials, if the received rate
// under overload is near the capacity. Noise and several phases make it longer.
func (c Config) Estimate() time.Duration {
	var total time.Duration
	for i, g := range c.Goals {
		loads := usualLoads
		if i > 0 {
			loads = furtherLoads
		}
		// This many unanimous trials decide a load.
		trials := math.Ceil(g.Sum.Seconds() * math.Max(g.ExceedRatio, 1-g.ExceedRatio) / g.Trial.Seconds())
		total += time.Duration(float64(loads) * trials * float64(g.Trial))
	}
	return total
}

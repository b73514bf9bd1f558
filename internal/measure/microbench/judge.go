// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"fmt"

	"github.com/drayage/dray/internal/result/stats"
)

// enoughRounds is how many rounds a certain outcome takes: with fewer, one
// disturbed round determines the mean.
const enoughRounds = 6

// seed fixes the intervals' bootstrap: the same samples give the same table.
const seed = 1

// ratio is a figure divided by another one.
type ratio struct {
	value     float64
	low, high float64 // both equal to value if no interval is known
}

// to estimates f/other: from each round's pair if both were measured in the same
// rounds, otherwise from the two values alone, without an interval.
func (f *Figure) to(other *Figure) (ratio, bool) {
	if other == nil || !f.Measured() || !other.Measured() || other.Value() == 0 {
		return ratio{}, false
	}
	plain := f.Value() / other.Value()
	r := ratio{plain, plain, plain}
	if f.quantile != nil || other.quantile != nil || len(f.samples) != len(other.samples) {
		return r, true
	}
	pairs := make([]stats.Pair, len(f.samples))
	for i := range pairs {
		pairs[i] = stats.Pair{A: f.samples[i], B: other.samples[i]}
	}
	if e, err := stats.Ratio(pairs, seed); err == nil {
		r = ratio{e.Ratio, e.CI.Low, e.CI.High}
	}
	return r, true
}

func (t target) reached(value float64) bool {
	if t.atMost {
		return value <= t.value
	}
	return value >= t.value
}

// outcome reports whether a target was reached, and whether that is certain.
func (t target) outcome(rounds int, r ratio) string {
	word := "NOT reached"
	if t.reached(r.value) {
		word = "reached"
	}
	switch {
	case rounds < enoughRounds:
		return word + ", in too few rounds to be sure"
	case t.reached(r.low) != t.reached(r.high):
		return word + ", but the interval contains the target"
	}
	return word
}

// rounds is the number of samples behind a figure's outcome.
func (f *Figure) rounds() int {
	if f.quantile != nil {
		return f.quantile.N
	}
	return len(f.samples)
}

// Reached reports whether every target that could be judged was reached.
func (f *Figure) Reached() bool {
	for _, t := range f.targets {
		if r, ok := f.to(t.of); ok && !t.reached(r.value) {
			return false
		}
	}
	return true
}

func (t target) bound() string {
	if t.atMost {
		return fmt.Sprintf("at most %.2f", t.value)
	}
	return fmt.Sprintf("at least %.2f", t.value)
}

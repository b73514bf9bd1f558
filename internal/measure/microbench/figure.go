// SPDX-License-Identifier: Apache-2.0

// Package microbench runs the developers' benches of the data plane. Small C
// programs measure and print raw samples; this package interleaves them, estimates,
// judges targets, and writes tables and JSON.
package microbench

import (
	"slices"

	"github.com/drayage/dray/internal/result/stats"
)

// Figures are all results of one bench.
type Figures struct {
	list  []*Figure
	marks []string // of the whole run
}

// Figure is one row: samples of several rounds, or a quantile of many values.
type Figure struct {
	Group, Name, Unit string
	// limit is the figure that this one is divided by; nil: none.
	limit    *Figure
	samples  []float64 // one per round
	quantile *stats.QuantileEstimate
	missing  string // why it could not be measured
	marks    []string
	targets  []target
	causes   []string // why it misses a target, one line each
	hidden   bool     // its group has its own table
}

// target is the ratio to another figure that a figure should reach.
type target struct {
	of     *Figure // nil: nothing to compare with
	what   string
	value  float64
	atMost bool
}

// Figure finds a figure, or adds it.
func (s *Figures) Figure(group, name, unit string) *Figure {
	i := slices.IndexFunc(s.list, func(f *Figure) bool { return f.Group == group && f.Name == name })
	if i >= 0 {
		return s.list[i]
	}
	f := &Figure{Group: group, Name: name, Unit: unit}
	s.list = append(s.list, f)
	return f
}

// Mark records a doubt about the whole run.
func (s *Figures) Mark(mark string) { s.marks = append(s.marks, mark) }

// Keep drops all samples after the first n rounds: the next was not finished.
func (s *Figures) Keep(n int) {
	for _, f := range s.list {
		f.samples = f.samples[:min(n, len(f.samples))]
	}
}

// Of shows the figure as a ratio to another one.
func (f *Figure) Of(limit *Figure) *Figure {
	f.limit = limit
	return f
}

// Add adds one round's sample.
func (f *Figure) Add(sample float64) { f.samples = append(f.samples, sample) }

// Quantile makes the figure the q-quantile of values. It is missing if fewer than
// one value is expected beyond it.
func (f *Figure) Quantile(values []float64, q float64) {
	e, err := stats.Quantile(values, q)
	if err != nil || float64(len(values))*(1-q) < 1 {
		f.Missing("too few samples for this quantile")
		return
	}
	f.quantile = &e
}

// Missing says why the figure could not be measured.
func (f *Figure) Missing(why string) { f.missing = why }

// Mark records a doubt about this figure, or an outcome.
func (f *Figure) Mark(mark string) { f.marks = append(f.marks, mark) }

// AtLeast and AtMost set a target: a ratio to another figure, described by what.
func (f *Figure) AtLeast(value float64, of *Figure, what string) {
	f.targets = append(f.targets, target{of: of, what: what, value: value})
}

func (f *Figure) AtMost(value float64, of *Figure, what string) {
	f.targets = append(f.targets, target{of: of, what: what, value: value, atMost: true})
}

// Measured reports whether there is a value, and no failure since.
func (f *Figure) Measured() bool { return f.missing == "" && (f.quantile != nil || len(f.samples) > 0) }

// whyMissing is the reason why a figure has no value.
func (f *Figure) whyMissing() string {
	if f.missing != "" {
		return f.missing
	}
	return "left out of this profile"
}

// estimate is the value: the quantile, or the median of the samples. Both have
// order-statistic intervals.
func (f *Figure) estimate() stats.QuantileEstimate {
	if f.quantile != nil {
		return *f.quantile
	}
	e, err := stats.Median(f.samples)
	if err != nil {
		return stats.QuantileEstimate{}
	}
	return e
}

// Value is the measured value, or 0.
func (f *Figure) Value() float64 { return f.estimate().Value }

// best is the measured figure with the highest, or lowest, value; nil if there is none.
func best(figures []*Figure, lowest bool) *Figure {
	var found *Figure
	for _, f := range figures {
		if f.Measured() && (found == nil || (f.Value() < found.Value()) == lowest) {
			found = f
		}
	}
	return found
}

// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// rows compares every figure that either side of the cell has.
func rows(cell Cell, a, b *side, same []*side) []Row {
	var out []Row
	for _, m := range metrics() {
		va, vb := m.read(a), m.read(b)
		if va.n() == 0 && vb.n() == 0 {
			continue
		}
		r := Row{Cell: cell, Metric: m.name, Unit: m.unit, higher: m.higher, A: va.side(a), B: vb.side(b)}
		others := []values{va}
		for _, s := range same {
			if unlike(m, a, s) == "" {
				others = append(others, m.read(s))
			}
		}
		if r.Reason = unlike(m, a, b); r.Reason != "" {
			r.Outcome = NotCompared
		} else {
			r.compare(va, vb, others)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		out = append(out, failed(cell, a, b))
	}
	return out
}

// unlike is why a figure is not comparable between the sides; empty: it is.
func unlike(m metric, a, b *side) string {
	if x, y := goalOf(a), goalOf(b); x != "" && y != "" && x != y {
		return fmt.Sprintf("searched for by %s in A, by %s in B", x, y)
	}
	// A longer trial has a larger maximum. cyclictest's trials include its start.
	const apart = 1.25
	x, y := longest(a), longest(b)
	if strings.HasSuffix(m.name, maximum) && x > 0 && y > 0 && float64(max(x, y)) > apart*float64(min(x, y)) {
		return fmt.Sprintf("the largest in trials of %v in A, of %v in B", x.Round(time.Millisecond), y.Round(time.Millisecond))
	}
	return ""
}

// goalOf is the search goal of a side's rates; empty: none.
func goalOf(s *side) string {
	for _, t := range s.trials {
		if t.Bench != nil && t.Bench.Search != nil {
			return t.Bench.Search.Goal
		}
	}
	return ""
}

func longest(s *side) (most time.Duration) {
	for _, t := range s.trials {
		most = max(most, t.Duration)
	}
	return most
}

// failed is the row of a cell without figures, so that the cell is not omitted.
func failed(cell Cell, a, b *side) Row {
	reason := fmt.Sprintf("no trial has a result: %d failed in A, %d in B", a.failed, b.failed)
	if len(a.trials)+len(b.trials) > 0 {
		reason = "its trials have no figure to compare"
	}
	return Row{
		Cell: cell, Metric: strings.ReplaceAll(string(cell.Quantity), "_", " "), A: values{}.side(a), B: values{}.side(b),
		Outcome: NotCompared, Reason: reason,
	}
}

// values are a metric's figures of one side, one per trial that has it.
type values struct {
	figures  []float64
	clusters []stats.Cluster // for a proportion
	ids      []string
	share    bool
}

func (m metric) read(s *side) (v values) {
	v.share = m.counts != nil
	for _, t := range s.trials {
		if v.share {
			if c, ok := m.counts(t); ok {
				v.clusters, v.figures, v.ids = append(v.clusters, c), append(v.figures, c.Events/c.N), append(v.ids, t.ID)
			}
		} else if f, ok := m.value(t); ok {
			v.figures, v.ids = append(v.figures, f), append(v.ids, t.ID)
		}
	}
	return v
}

func (v values) n() int { return len(v.figures) }

// positive reports whether every figure has a logarithm.
func (v values) positive() bool {
	return !v.share && !slices.ContainsFunc(v.figures, func(f float64) bool { return !(f > 0) })
}

// mean is the figure of the whole side; see Side.Value.
func (v values) mean() float64 {
	var sum, events, samples float64
	for _, f := range v.figures {
		if v.positive() {
			f = math.Log(f)
		}
		sum += f
	}
	for _, c := range v.clusters {
		events += c.Events
		samples += c.N
	}
	switch sum /= float64(v.n()); {
	case v.n() == 1:
		return v.figures[0]
	case v.share:
		return events / samples
	case v.positive():
		return math.Exp(sum)
	}
	return sum
}

func (v values) side(s *side) Side {
	out := Side{
		Transports: append([]string{}, s.transports...), N: v.n(), Failed: s.failed,
		Outliers: []string{}, Marks: append([]string{}, s.marks...), results: len(s.trials),
	}
	slices.Sort(out.Marks)
	if v.n() > 0 {
		mean := v.mean()
		out.Value = &mean
	}
	for i, flagged := range stats.Outliers(v.figures) {
		if flagged {
			out.Outliers = append(out.Outliers, v.ids[i])
		}
	}
	return out
}

// compare decides a row.
func (r *Row) compare(a, b values, sameAsA []values) {
	r.Outcome = NotCompared
	emulated := func(s Side) bool { return slices.Contains(s.Marks, record.MarkEmulated) }
	switch {
	case a.n() == 0:
		r.Reason = missing(r.A, "A", "B")
		return
	case b.n() == 0:
		r.Reason = missing(r.B, "B", "A")
		return
	case emulated(r.A) != emulated(r.B):
		r.Reason = "an emulated figure is not compared with a native one"
		return
	case min(a.n(), b.n()) < 2:
		r.Reason = fmt.Sprintf("needs 2 trials on each side, there are %d and %d", a.n(), b.n())
		return
	}
	change, unchanged, err := r.estimate(a, b)
	if err != nil {
		r.Reason = err.Error()
		return
	}
	within := r.withinNoise(change.Value, unchanged, sameAsA)
	switch {
	case change.Low <= unchanged && unchanged <= change.High:
		r.Outcome = Indistinguishable
	case within:
		r.Outcome, r.Reason = Indistinguishable, "runs of A differ by as much"
	case (change.Value > unchanged) == r.higher:
		r.Outcome = Better
	default:
		r.Outcome = Worse
	}
}

// missing explains why one side lacks a figure that the other has.
func missing(s Side, name, other string) string {
	switch {
	case s.results > 0:
		return "the trials of " + name + " do not support it"
	case s.Failed > 0:
		return "every trial of " + name + " failed"
	}
	if other == "A" {
		return onlyInA
	}
	return onlyInB
}

// Reasons for figures that a run lacks completely.
const (
	onlyInA = "only in A"
	onlyInB = "only in B"
)

// estimate is the ratio or difference of a row, and its value for no change.
func (r *Row) estimate(a, b values) (change Change, unchanged float64, err error) {
	var d stats.Difference
	switch {
	case a.share:
		d, err = stats.ProportionDifference(a.clusters, b.clusters)
		r.Method = "difference of proportions over trials, Newcombe"
	case a.positive() && b.positive():
		ratio, p, err := stats.UnpairedRatio(a.figures, b.figures)
		change = Change{ratio.Ratio, ratio.CI.Low, ratio.CI.High}
		r.Ratio, r.Method, r.P = &change, ratio.Method, &p
		return change, 1, err
	default:
		d, err = stats.Welch(a.figures, b.figures)
		r.Method = "Welch's t interval"
		r.P = &d.P
	}
	change = Change{d.Value, d.CI.Low, d.CI.High}
	r.Difference = &change
	return change, 0, err
}

// withinNoise reports whether runs of A's kind differ by as much as a change, and
// records by how much they differ.
func (r *Row) withinNoise(change, unchanged float64, sameAsA []values) bool {
	var means []float64
	for _, v := range sameAsA {
		if v.n() == 0 || unchanged == 1 && !v.positive() {
			continue
		}
		mean := v.mean()
		if unchanged == 1 {
			mean = math.Log(mean)
		}
		means = append(means, mean)
	}
	noise, err := stats.RunNoise(means)
	if err != nil {
		return false // no further runs of A
	}
	size := math.Abs(change)
	if unchanged == 1 {
		size = math.Abs(math.Log(change))
		ratio := math.Exp(noise)
		r.Noise = &ratio
	} else {
		r.Noise = &noise
	}
	return size <= noise
}

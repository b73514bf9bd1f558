// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/stats"
)

// Outcome of one figure.
type Outcome string

// Outcomes. Better and Worse are of B, as seen from A.
const (
	Better            Outcome = "better"
	Worse             Outcome = "worse"
	Indistinguishable Outcome = "indistinguishable"
	NotCompared       Outcome = "not compared"
)

// Side is one run's part of a row.
type Side struct {
	Transports []string `json:"transports"`
	N          int      `json:"n"` // trials that support the figure
	Failed     int      `json:"failed"`
	// Value is the geometric mean over trials, the mean where a trial has 0, or
	// the share of all samples where the figure is a proportion; absent for N 0.
	Value    *float64 `json:"value,omitempty"`
	Outliers []string `json:"outliers"` // trials flagged, not left out
	Marks    []string `json:"marks"`

	results int // trials with any result
}

// Row is one figure of one cell in both runs.
type Row struct {
	Cell    Cell    `json:"cell"`
	Metric  string  `json:"metric"`
	Unit    string  `json:"unit"`
	A       Side    `json:"a"`
	B       Side    `json:"b"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // of NotCompared, and of an Indistinguishable that Noise decides
	// Ratio is B/A with its 95 % interval, or Difference B − A: one of the two
	// where the row was compared.
	Ratio      *Change `json:"ratio,omitempty"`
	Difference *Change `json:"difference,omitempty"`
	Method     string  `json:"method,omitempty"`
	// P is the p-value of no difference, and Holm the same adjusted for the number
	// of rows that have one.
	P    *float64 `json:"p,omitempty"`
	Holm *float64 `json:"holm,omitempty"`
	// Noise is how far runs of A's kind differ: a ratio, or a difference.
	Noise *float64 `json:"noise,omitempty"`

	higher bool // is better
}

// Change is an estimate with its 95 % interval.
type Change struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Comparison is all of it.
type Comparison struct {
	A    *Run   `json:"a"`
	B    *Run   `json:"b"`
	Same []*Run `json:"same"` // further runs of A's kind
	// Besides is what else differs between the machines, "kernel: 6.1 → 6.18".
	Besides []string `json:"besides"`
	Rows    []Row    `json:"rows"`
	// ByChance is how many rows would differ at 95 % though nothing does.
	ByChance float64 `json:"by_chance"`
}

// Compare sets B against A. Further runs of what A ran show how far two runs
// differ by themselves: a difference within that is called indistinguishable.
func Compare(a, b *Run, same ...*Run) (*Comparison, error) {
	seen := map[string]string{}
	for _, r := range append([]*Run{a, b}, same...) {
		if other, twice := seen[r.ID]; twice {
			return nil, fmt.Errorf("%s and %s are the same run, %s", other, r.Path, r.ID)
		}
		seen[r.ID] = r.Path
	}
	c := &Comparison{A: a, B: b, Same: append([]*Run{}, same...), Besides: besides(a.env, b.env), Rows: []Row{}}
	order, inA := a.cells()
	orderB, inB := b.cells()
	for _, cell := range orderB {
		if inA[cell] == nil {
			order = append(order, cell)
		}
	}
	arrange(order)
	var more []map[Cell]*side
	for _, r := range same {
		_, cells := r.cells()
		more = append(more, cells)
	}
	for _, cell := range order {
		others := make([]*side, len(more))
		for i := range more {
			others[i] = orEmpty(more[i][cell])
		}
		c.Rows = append(c.Rows, rows(cell, orEmpty(inA[cell]), orEmpty(inB[cell]), others)...)
	}
	c.nameInstruments()
	c.sum()
	return c, nil
}

func orEmpty(s *side) *side {
	if s == nil {
		return &side{}
	}
	return s
}

// nameInstruments says where a figure was measured on both sides, but by
// different instruments: such figures are not compared.
func (c *Comparison) nameInstruments() {
	type figure struct {
		cell   Cell
		metric string
	}
	key := func(r Row) figure {
		cell := r.Cell
		cell.Instrument = ""
		return figure{cell, r.Metric}
	}
	onlyB := map[figure]int{}
	for i, r := range c.Rows {
		if r.Reason == onlyInB {
			onlyB[key(r)] = i
		}
	}
	for i, r := range c.Rows {
		if j, ok := onlyB[key(r)]; ok && r.Reason == onlyInA {
			reason := fmt.Sprintf("by %s in A, by %s in B", r.Cell.Instrument, c.Rows[j].Cell.Instrument)
			c.Rows[i].Reason, c.Rows[j].Reason = reason, reason
		}
	}
}

// sum adds what concerns all rows together.
func (c *Comparison) sum() {
	var p []float64
	for _, r := range c.Rows {
		if r.Outcome != NotCompared {
			c.ByChance += 1 - stats.Confidence
		}
		if r.P != nil {
			p = append(p, *r.P)
		}
	}
	adjusted := stats.Holm(p)
	for i := range c.Rows {
		if c.Rows[i].P != nil {
			c.Rows[i].Holm, adjusted = &adjusted[0], adjusted[1:]
		}
	}
}

// rows compares every figure that a side of the cell has.
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
			others = append(others, m.read(s))
		}
		r.compare(va, vb, others)
		out = append(out, r)
	}
	if len(out) == 0 {
		out = append(out, failed(cell, a, b))
	}
	return out
}

// failed is the row of a cell that has no figure at all, so that it is not left out.
func failed(cell Cell, a, b *side) Row {
	return Row{
		Cell: cell, Metric: strings.ReplaceAll(string(cell.Quantity), "_", " "), A: values{}.side(a), B: values{}.side(b),
		Outcome: NotCompared, Reason: fmt.Sprintf("no trial with a result: %d failed in A, %d in B", a.failed, b.failed),
	}
}

// values are a metric's figures of one side, one for each trial that has it.
type values struct {
	figures  []float64
	clusters []stats.Cluster // of a proportion
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
		r.Reason = fmt.Sprintf("takes 2 trials on each side, there are %d and %d", a.n(), b.n())
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
		r.Outcome, r.Reason = Indistinguishable, "runs of A differ as much"
	case (change.Value > unchanged) == r.higher:
		r.Outcome = Better
	default:
		r.Outcome = Worse
	}
}

// missing says why one side lacks a figure that the other has.
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

// Reasons of figures that one run does not have at all.
const (
	onlyInA = "only in A"
	onlyInB = "only in B"
)

// estimate is the ratio or difference of a row, and its value where nothing has changed.
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

// withinNoise reports whether runs of A's kind differ by as much as a change,
// and keeps by how much they do.
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

// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"

	"github.com/drayage/dray/internal/result/stats"
)

// Outcome is a figure's result.
type Outcome string

// Outcomes. Better and Worse describe B relative to A.
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
	// Value is the geometric mean over trials, the mean if a trial has 0, or the share
	// of all samples for a proportion; absent if N is 0.
	Value    *float64 `json:"value,omitempty"`
	Outliers []string `json:"outliers"` // trials flagged, but included
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
	Reason  string  `json:"reason,omitempty"` // for NotCompared, and for an Indistinguishable due to Noise
	// Ratio is B/A with its 95 % interval, or Difference B − A: a compared row has one
	// of the two.
	Ratio      *Change `json:"ratio,omitempty"`
	Difference *Change `json:"difference,omitempty"`
	Method     string  `json:"method,omitempty"`
	// P is the p-value of no difference; Holm is P adjusted for the number of rows with
	// one.
	P    *float64 `json:"p,omitempty"`
	Holm *float64 `json:"holm,omitempty"`
	// Noise is how much runs of A's kind differ: a ratio, or a difference.
	Noise *float64 `json:"noise,omitempty"`

	higher bool // is better
}

// Change is an estimate with its 95 % interval.
type Change struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Comparison compares two runs.
type Comparison struct {
	A    *Run   `json:"a"`
	B    *Run   `json:"b"`
	Same []*Run `json:"same"` // further runs of A's kind
	// Besides lists the machines' other differences, "kernel: 6.1 → 6.18".
	Besides []string `json:"besides"`
	Rows    []Row    `json:"rows"`
	// ByChance is the expected number of rows that differ at 95 % by chance.
	ByChance float64 `json:"by_chance"`
}

// Compare compares B with A. Further runs of A's kind show how much two such runs
// differ; a difference within that is called indistinguishable.
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
	adopt(order, inA, inB)
	adopt(orderB, inB, inA)
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
	c.nameDifferences()
	c.sum()
	return c, nil
}

func orEmpty(s *side) *side {
	if s == nil {
		return &side{}
	}
	return s
}

// nameDifferences explains figures measured on both sides, but by different
// instruments or with frames of different lengths: these are not compared.
func (c *Comparison) nameDifferences() {
	type figure struct {
		cell   Cell
		metric string
	}
	key := func(r Row) figure {
		cell := r.Cell
		cell.Instrument, cell.Frame = "", 0
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
			reason := difference(r.Cell, c.Rows[j].Cell)
			c.Rows[i].Reason, c.Rows[j].Reason = reason, reason
		}
	}
}

// difference is in what two cells of one figure differ.
func difference(a, b Cell) string {
	if a.Instrument != b.Instrument {
		return fmt.Sprintf("by %s in A, by %s in B", a.Instrument, b.Instrument)
	}
	return fmt.Sprintf("in frames of %d bytes in A, of %d in B", a.Frame, b.Frame)
}

// sum computes what depends on all rows.
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

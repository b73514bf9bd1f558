// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/stats"
)

// Again ends the names of cells in the records of A/A trials: the second ones of a
// cell in one round.
const Again = "/again"

// noise says how far two measurements of one configuration in one round differ, and
// from what difference on so many pairs as there are rounds tell two configurations
// from each other.
func (d *ExperimentsData) noise() string {
	row, pairs := d.againPairs()
	if row == nil {
		return "nothing was measured twice in a round, so that the noise between two measurements is not known"
	}
	seen, err := stats.SmallestDetectable(pairs, d.Run.Rounds, d.Run.Seed)
	if err != nil {
		return fmt.Sprintf("%s (%s) twice in each round: %v", row.Cell, row.Figure, err)
	}
	return fmt.Sprintf("%s (%s) twice in each round: ratio %.3f (%.3f … %.3f) in %d pairs; %d pairs tell a difference of × %.3g from noise, with a probability of %.0f %%",
		row.Cell, strings.ReplaceAll(string(row.Figure), "_", " "), seen.AA.Ratio, seen.AA.CI.Low, seen.AA.CI.High, len(pairs), seen.Pairs, seen.Ratio, 100*stats.Power)
}

// againPairs are the figures of the cell that was measured twice, by rounds, and a
// row that shows them.
func (d *ExperimentsData) againPairs() (row *chain.ExperimentRow, pairs []stats.Pair) {
	for _, t := range d.Trials {
		if t.Experiment == nil {
			continue
		}
		cell, second := strings.CutSuffix(t.Experiment.Cell, Again)
		if !second {
			continue
		}
		if row == nil {
			row = d.rowOf(cell)
		}
		if row == nil || row.Cell.String() != cell {
			continue
		}
		for _, first := range d.of(row.Cell) {
			if first.Round == t.Round {
				pairs = appendPair(pairs, row.Figure, first, t)
			}
		}
	}
	return row, pairs
}

func appendPair(pairs []stats.Pair, f chain.Figure, first, second record.Trial) []stats.Pair {
	a, whyA := valueOf(f, first)
	b, whyB := valueOf(f, second)
	if whyA != "" || whyB != "" || a <= 0 || b <= 0 {
		return pairs
	}
	return append(pairs, stats.Pair{A: a, B: b})
}

// rowOf is the first row of a cell; nil: there is none.
func (d *ExperimentsData) rowOf(cell string) *chain.ExperimentRow {
	for i := range d.Run.Experiments {
		for j := range d.Run.Experiments[i].Rows {
			if r := &d.Run.Experiments[i].Rows[j]; r.NotRun == "" && r.Cell.String() == cell {
				return r
			}
		}
	}
	return nil
}

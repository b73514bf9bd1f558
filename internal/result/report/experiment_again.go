// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/experiment"
)

// Again is the cell name suffix of A/A trials: the second trials of a cell in one
// round.
const Again = "/again"

// noise describes how much two measurements of one configuration in one round differ.
// It also states the smallest difference that as many pairs as rounds can resolve.
func (d *ExperimentsData) noise() string {
	row, pairs := d.againPairs()
	if row == nil {
		return "no row was measured twice in a round, so the noise between two measurements is unknown"
	}
	seen, err := stats.SmallestDetectable(pairs, d.Run.Rounds, d.Run.Seed)
	if err != nil {
		return fmt.Sprintf("%s (%s) twice in each round: %v", row.Cell, row.Figure, err)
	}
	return fmt.Sprintf("%s (%s) twice in each round: ratio %.3f (%.3f … %.3f) in %d pairs; %d pairs distinguish a difference of × %.3g from noise with a probability of %.0f %%",
		row.Cell, strings.ReplaceAll(string(row.Figure), "_", " "), seen.AA.Ratio, seen.AA.CI.Low, seen.AA.CI.High, len(pairs), seen.Pairs, seen.Ratio, 100*stats.Power)
}

// againPairs are the figures of the cell measured twice, by rounds, and a row that
// shows them; nil: none was.
func (d *ExperimentsData) againPairs() (*experiment.Row, []stats.Pair) {
	for i := range d.Run.Experiments {
		for j := range d.Run.Experiments[i].Rows {
			row := &d.Run.Experiments[i].Rows[j]
			if second := d.named(row.Cell.String() + Again); row.NotRun == "" && len(second) > 0 {
				found, _ := sameRound(row.Figure, d.of(row.Cell), row.Figure, second)
				return row, slices.DeleteFunc(found, func(p stats.Pair) bool { return p.A <= 0 || p.B <= 0 }) // has no ratio
			}
		}
	}
	return nil, nil
}

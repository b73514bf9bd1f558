// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
)

// TestClaimsGetTheirRounds runs a clock of its own: where a run is cut short, every
// cell is measured once, and those of claims in every round.
func TestClaimsGetTheirRounds(t *testing.T) {
	e := chain.Experiment{Name: "x", Claims: []chain.ShapeClaim{{Text: "a below b", Less: "a", Than: "b"}, {Text: "a below n", Less: "n", Than: "gone"}}}
	for i := range 20 {
		e.Rows = append(e.Rows, chain.ExperimentRow{Name: string(rune('a' + i)), Cell: tcp(fmt.Sprint("transport", i))})
	}
	e.Rows = append(e.Rows, chain.ExperimentRow{Name: "gone", NotRun: "no NIC"})
	each := expect(e.Rows[0].Cell, time.Second)
	for _, c := range []struct {
		atMost time.Duration // in cells
		want   []int         // trials of the cells of the claim, and of all
	}{{0, []int{10, 100}}, {60, []int{10, 60}}, {28, []int{10, 28}}, {22, []int{4, 22}}} {
		run := &report.ExperimentsRun{Rounds: 5, Trial: time.Second, Experiments: []chain.Experiment{e}, AtMost: c.atMost * each}
		var now time.Duration
		b := newBudget(run, func() time.Duration { return now })
		var ofClaim, all int
		for round := range run.Rounds {
			cells := here(run)
			for i, cell := range cells {
				if !b.allows(cell, round, cells[i:]) {
					continue
				}
				now += each
				all++
				if b.claimed[cell.String()] {
					ofClaim++
				}
			}
		}
		if ofClaim != c.want[0] || all != c.want[1] {
			t.Errorf("in the time of %d trials: %d of the claim's cells, %d in all; want %v", c.atMost, ofClaim, all, c.want)
		}
	}
}

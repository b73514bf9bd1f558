// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
)

// budget shares out a run's time: every cell is measured once, then those that
// claims are decided by in every round, and the others as time is left.
type budget struct {
	run     *report.ExperimentsRun
	spent   func() time.Duration
	claimed map[string]bool
	again   *chain.Cell // measured twice in each round; nil: none is
}

func newBudget(run *report.ExperimentsRun, spent func() time.Duration) *budget {
	return &budget{run, spent, claimed(run), again(run)}
}

// claimed are the cells of claims that can be decided here, by their names.
func claimed(run *report.ExperimentsRun) map[string]bool {
	cells := map[string]bool{}
	for _, e := range run.Experiments {
		rows := map[string]*chain.ExperimentRow{}
		for i := range e.Rows {
			rows[e.Rows[i].Name] = &e.Rows[i]
		}
		for _, claim := range e.Claims {
			first, second := claim.Rows()
			if a, b := rows[first], rows[second]; decidable(run, a) && decidable(run, b) {
				cells[a.Cell.String()], cells[b.Cell.String()] = true, true
			}
		}
	}
	return cells
}

// decidable reports whether a row is measured here, and not emulated: no claim rests
// on one that is.
func decidable(run *report.ExperimentsRun, r *chain.ExperimentRow) bool {
	return r != nil && r.NotRun == "" && run.Skipped[r.Cell.String()] == "" && run.Lab[r.Cell.String()] == "" &&
		(r.Cell.Runtime != chain.RuntimeVM || !run.Emulated)
}

// allows reports whether there is time for a cell in a round, of which those ahead,
// itself among them, are still to be measured.
func (b *budget) allows(c chain.Cell, round int, ahead []chain.Cell) bool {
	if b.run.AtMost <= 0 {
		return true
	}
	left := b.run.AtMost - b.spent() - expectIn(b.run, c)
	if round > 0 && !b.claimed[c.String()] {
		left -= b.reserve(round, ahead)
	}
	return left >= 0
}

// reserve is what the cells of claims take in the rest of a round, and in those
// after it.
func (b *budget) reserve(round int, ahead []chain.Cell) time.Duration {
	var rest, whole time.Duration
	for _, c := range ahead {
		if b.claimed[c.String()] {
			rest += expectIn(b.run, c)
		}
	}
	for _, c := range here(b.run) {
		if b.claimed[c.String()] {
			whole += expectIn(b.run, c)
		}
	}
	if b.again != nil {
		whole += expectIn(b.run, *b.again)
	}
	return rest + time.Duration(b.run.Rounds-round-1)*whole
}

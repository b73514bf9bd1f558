// SPDX-License-Identifier: Apache-2.0

package published

import (
	"slices"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// linkTools measure a link that is up, in seconds.
var linkTools = []experiment.Tool{experiment.ToolFrames, experiment.ToolTCP, experiment.ToolRequests, experiment.ToolPingPong, experiment.ToolUDP, experiment.ToolOneWay, experiment.ToolEcho, experiment.ToolQueue}

// again is the cell measured twice in each round (A/A), which shows the noise in
// claims: the shortest cell that claims compare. nil: no claim compares any.
func again(run *report.ExperimentsRun) *experiment.Cell {
	if run.Part || run.Rounds < 2 {
		return nil
	}
	var found *experiment.Cell
	compared := claimed(run)
	for _, c := range here(run) {
		if !compared[c.String()] || !slices.Contains(linkTools, c.Tool) || c.Runtime == chain.RuntimeVM {
			continue
		}
		if found == nil || expectIn(run, c) < expectIn(run, *found) {
			found = &c
		}
	}
	return found
}

// claimed are the cells of claims that can be decided here, by name.
func claimed(run *report.ExperimentsRun) map[string]bool {
	cells := map[string]bool{}
	for _, e := range run.Experiments {
		rows := map[string]*experiment.Row{}
		for i := range e.Rows {
			rows[e.Rows[i].Name] = &e.Rows[i]
		}
		for _, claim := range e.Claims {
			names := claim.Rows()
			if slices.ContainsFunc(names, func(name string) bool { return !decidable(run, rows[name]) }) {
				continue
			}
			for _, name := range names {
				cells[rows[name].Cell.String()] = true
			}
		}
	}
	return cells
}

// decidable reports whether a row is measured here without emulation: no claim
// relies on an emulated row.
func decidable(run *report.ExperimentsRun, r *experiment.Row) bool {
	return r != nil && r.NotRun == "" && run.Skipped[r.Cell.String()] == "" && run.Lab[r.Cell.String()] == "" &&
		(r.Cell.Runtime != chain.RuntimeVM || !run.Emulated)
}

// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
)

// inDocker ends the title of a row that InDocker has changed.
const inDocker = " (in Docker)"

// InDocker is the experiment with Docker containers instead of runc containers. A row
// stays as it is if another row shows the same in Docker already, or if its tool
// or kernel face is of runc only.
func (e Experiment) InDocker() Experiment {
	all := e.Rows
	e.Rows = slices.Clone(all)
	changed := false
	for i, r := range all {
		if r.Cell.Runtime != chain.RuntimeRunc || r.Cell.Tool == ToolImage || r.Cell.Tool == ToolPool || r.Cell.KernelFace == KernelFaceVeth {
			continue
		}
		r.Cell.Runtime = chain.RuntimeDocker
		if slices.ContainsFunc(all, func(o Row) bool { return o.Cell == r.Cell && o.Figure == r.Figure }) {
			continue
		}
		r.Title += inDocker
		e.Rows[i], changed = r, true
	}
	if changed {
		e.Notes = append(slices.Clone(e.Notes), "Rows that end in"+inDocker+" have Docker containers instead of runc containers: the run was begun with --containers docker.")
	}
	return e
}

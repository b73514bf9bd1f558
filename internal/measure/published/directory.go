// SPDX-License-Identifier: Apache-2.0

package published

import (
	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/result/report"
)

// Dir is an experiments run's directory.
type Dir = rundir.Dir[report.ExperimentsRun]

var layout = &rundir.Layout[report.ExperimentsRun]{
	StateFile: report.ExperimentsFile, RecordsFile: report.RecordsFile, Load: report.LoadExperimentsRun,
	Finished: func(run *report.ExperimentsRun) bool { return !run.Finished.IsZero() },
}

// Begin creates a new run's directory; if it exists it must be empty.
func Begin(dir string, run *report.ExperimentsRun) (*Dir, error) {
	return layout.Begin(dir, run, nil)
}

// Resume opens the directory of an interrupted run.
func Resume(dir string) (*Dir, error) { return layout.Resume(dir) }

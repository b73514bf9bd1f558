// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"github.com/drayage/dray/internal/measure/session"
	"github.com/drayage/dray/internal/result/report"
)

// Session is the directory of a run of experiments.
type Session = session.Session[report.ExperimentsRun]

var directories = &session.Kind[report.ExperimentsRun]{
	StateFile: report.ExperimentsFile, RecordsFile: report.RecordsFile, Load: report.LoadExperimentsRun,
	Finished: func(run *report.ExperimentsRun) bool { return !run.Finished.IsZero() },
}

// Begin makes the directory of a new run, which must be empty or not there.
func Begin(dir string, run *report.ExperimentsRun) (*Session, error) {
	return directories.Begin(dir, run, nil)
}

// Resume takes an interrupted run up again.
func Resume(dir string) (*Session, error) { return directories.Resume(dir) }

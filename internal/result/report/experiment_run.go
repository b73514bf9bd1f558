// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// ExperimentsSchema is the version of experiments.json.
const ExperimentsSchema = 1

// ExperimentsFile is the file that only directories of experiments have.
const ExperimentsFile = "experiments.json"

// Program is the dray build that began a run.
type Program struct {
	Dray  string `json:"dray"`            // its version
	Build string `json:"build,omitempty"` // first 16 digits of a SHA-256 over its and its generators' files
}

// ExperimentsRun is experiments.json: the planned measurement, and the parts that
// cannot run.
type ExperimentsRun struct {
	Schema  int           `json:"schema"`
	ID      string        `json:"id"`
	Profile string        `json:"profile"`
	Rounds  int           `json:"rounds"` // of every cell
	Trial   time.Duration `json:"trial"`  // ns
	// AtMost ends the run early: a cell starts only if it can end in time. 0: all
	// rounds. Took is the run's time so far, over all sessions. Both in ns.
	AtMost      time.Duration           `json:"at_most,omitempty"`
	Took        time.Duration           `json:"took"`
	Experiments []experiment.Experiment `json:"experiments"`
	Started     time.Time               `json:"started"`
	Finished    time.Time               `json:"finished"` // zero: interrupted, or still running
	Seed        uint64                  `json:"seed"`
	Program
	Host inventory.Host `json:"host"`
	// Skipped says, by name, why cells cannot run here.
	Skipped map[string]string `json:"skipped"`
	// Lab maps the cells that a lab guest measures to its kernel. LabRounds is how
	// often it does, Emulated whether its CPUs are emulated. LabDone lists the finished
	// guests.
	Lab       map[string]chain.VMKernel `json:"lab,omitempty"`
	LabRounds int                       `json:"lab_rounds,omitempty"`
	Emulated  bool                      `json:"emulated,omitempty"`
	LabDone   []chain.VMKernel          `json:"lab_done,omitempty"`
	// NoLimit says why the momentary physical limit could not be measured.
	NoLimit string `json:"no_limit,omitempty"`
	// Part says that this is a lab guest's part of another run.
	Part bool `json:"part,omitempty"`
}

// ExperimentsData is the parsed directory of experiments.
type ExperimentsData struct {
	Dir    string
	Run    ExperimentsRun
	Trials []record.Trial
	// Unfinished says that the run was interrupted, as in Warnings; empty: it was not.
	Unfinished string
	Warnings   []string
}

// IsExperiments reports whether a directory holds experiments.
func IsExperiments(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ExperimentsFile))
	return err == nil
}

// LoadExperimentsRun reads experiments.json of a directory.
func LoadExperimentsRun(dir string) (*ExperimentsRun, error) {
	var run ExperimentsRun
	if err := readJSON(dir, ExperimentsFile, &run); err != nil {
		return nil, err
	}
	if run.Schema != ExperimentsSchema {
		return nil, fmt.Errorf("%s: schema %d; this version of dray reads %d", filepath.Join(dir, ExperimentsFile), run.Schema, ExperimentsSchema)
	}
	return &run, nil
}

// LoadExperiments reads the directory of experiments, finished or not.
func LoadExperiments(dir string) (*ExperimentsData, error) {
	run, err := LoadExperimentsRun(dir)
	if err != nil {
		return nil, err
	}
	d := &ExperimentsData{Dir: dir, Run: *run}
	if d.Trials, d.Warnings, err = readRecords(filepath.Join(dir, RecordsFile), run.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if run.Finished.IsZero() {
		d.Unfinished = fmt.Sprintf("The run was interrupted: `dray bench --resume %s` continues it.", dir)
		d.Warnings = append(d.Warnings, d.Unfinished)
	}
	if run.NoLimit != "" {
		d.Warnings = append(d.Warnings, noLimit(run.NoLimit))
	}
	if len(run.Lab) > 0 && run.LabRounds < run.Rounds {
		d.Warnings = append(d.Warnings, fmt.Sprintf("Rows marked lab and emulated have %d of the profile's %d rounds: they take several times as long and decide no claim.", run.LabRounds, run.Rounds))
	}
	if run.AtMost > 0 && !run.Finished.IsZero() && run.Took+time.Minute > run.AtMost {
		d.Warnings = append(d.Warnings, fmt.Sprintf("The profile's time limit is %v: some rows have fewer rounds than others, or none.", run.AtMost))
	}
	return d, nil
}

// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/result/report"
)

// Directory is the directory of a chain's run, wherever the chain is.
type Directory = rundir.Dir[report.Run]

var layout = &rundir.Layout[report.Run]{
	StateFile: report.RunFile, RecordsFile: report.RecordsFile, Load: report.LoadRun,
	Finished: func(run *report.Run) bool { return !run.Finished.IsZero() },
	Known:    []string{report.ChainFile, report.PlanFile, report.InventoryFile},
}

// ID names a run of a chain.
func ID(chainName string, began time.Time) string {
	return fmt.Sprintf("%s-%s", chainName, began.UTC().Format("20060102T150405.000"))
}

// NewState is the state of a run that begins now.
func NewState(chainName string, o verify.Options, by report.Program) *report.Run {
	now := time.Now()
	return &report.Run{
		Schema: report.Schema, ID: ID(chainName, now), Chain: chainName, Started: now, Dray: by.Dray, Build: by.Build,
		Seed: o.Seed, Profile: string(o.Profile), Trial: o.Duration, Rounds: o.Rounds,
	}
}

// Create creates the directory of a run if missing. It holds the text of the chain and, by
// file name, what else is known of the run.
func Create(path string, state *report.Run, source []byte, known map[string]any) (*Directory, error) {
	files := map[string][]byte{report.ChainFile: source}
	for name, v := range known {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return nil, err
		}
		files[name] = append(text, '\n')
	}
	return layout.Begin(path, state, files)
}

// Phase times a part of a run.
func Phase(state *report.Run, name string, f func() error) error {
	started := time.Now()
	err := f()
	state.Phases = append(state.Phases, report.Phase{Name: name, Duration: time.Since(started)})
	return err
}

// Finish ends a run with an exit code, by default from its verdicts, and returns the
// directory's content, with the directory that it is in now.
func Finish(d *Directory, code int, interrupted bool) (*report.Data, error) {
	if err := d.Save(); err != nil { // for Load
		return nil, err
	}
	data, err := report.Load(d.Path)
	if err != nil {
		return nil, err
	}
	if code == 0 {
		code = data.ExitCode()
	}
	d.Run.ExitCode, d.Run.Interrupted, d.Run.Finished = code, interrupted, time.Time{}
	if !interrupted {
		d.Run.Finished = time.Now()
	}
	data.Run = *d.Run
	err = d.Save()
	data.Dir = d.Path
	return data, err
}

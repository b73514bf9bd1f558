// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Limits for reading, so that no directory can exhaust memory.
const (
	maxFile    = 16 << 20  // bytes of a JSON or YAML file
	maxRecords = 512 << 20 // bytes of all records
)

// Data is a parsed and judged run directory.
type Data struct {
	Dir       string
	Run       Run
	Plan      plan.Plan
	Inventory *inventory.Inventory // nil if the run kept none
	Trials    []record.Trial
	ChainText string   // chain.yaml verbatim; empty if the run kept none
	Warnings  []string // from reading: a last record that a crash tore
	Verdicts  []verdict.Verdict
}

// Load reads a run directory and judges it. run.json, plan.json and records.jsonl must
// exist; errors name the file, and for records.jsonl the line.
func Load(dir string) (*Data, error) {
	run, err := LoadRun(dir)
	if err != nil {
		return nil, err
	}
	d := &Data{Dir: dir, Run: *run}
	if err := readJSON(dir, PlanFile, &d.Plan); err != nil {
		return nil, err
	}
	if err := errors.Join(checkEnds(&d.Plan), checkPaths(&d.Plan)); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, PlanFile), err)
	}
	var inv inventory.Inventory
	switch err := readJSON(dir, InventoryFile, &inv); {
	case err == nil:
		d.Inventory = &inv
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	text, err := readFile(dir, ChainFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	d.ChainText = string(text)
	if d.Trials, d.Warnings, err = readRecords(filepath.Join(dir, RecordsFile), d.Run.ID); err != nil {
		return nil, err
	}
	for _, l := range d.judged() {
		d.Verdicts = append(d.Verdicts, verdict.Judge(verdict.OfRun(l, d.Trials), d.Trials)...)
	}
	for _, f := range d.Plan.Functions {
		d.Verdicts = append(d.Verdicts, verdict.JudgeCompute(f, d.Trials)...)
	}
	if c := d.Run.Cluster; c != nil {
		d.Verdicts, d.Warnings = c.with(d.Verdicts), append(d.Warnings, c.Warnings...)
	}
	return d, nil
}

// judged are the plan's links, and its paths as links.
func (d *Data) judged() []plan.Link {
	return append(slices.Clone(d.Plan.Links), d.Plan.OfPaths().Links...)
}

// checkEnds is an error if a plan without functions has a link with an end at one.
func checkEnds(p *plan.Plan) error {
	if len(p.Functions) > 0 {
		return nil
	}
	for _, l := range p.Links {
		for _, e := range l.Ends {
			if e.Uplink == "" {
				return fmt.Errorf("link %s has an end at function %q, and the plan has no functions", l.Name, e.Function)
			}
		}
	}
	return nil
}

// checkPaths is an error if a path is not over links of the plan.
func checkPaths(p *plan.Plan) error {
	for _, path := range p.Paths {
		if len(path.Steps) == 0 {
			return fmt.Errorf("path %s has no links", path.Name)
		}
		for _, s := range path.Steps {
			if p.Link(s.Link) == nil {
				return fmt.Errorf("path %s is over link %s, and the plan has no such link", path.Name, s.Link)
			}
		}
		for _, t := range path.Terms {
			if p.Link(t.Link) == nil {
				return fmt.Errorf("path %s has a figure of link %s, and the plan has no such link", path.Name, t.Link)
			}
		}
	}
	return nil
}

// LoadRun reads run.json.
func LoadRun(dir string) (*Run, error) {
	var run Run
	if err := readJSON(dir, RunFile, &run); err != nil {
		return nil, err
	}
	if run.Schema != Schema {
		return nil, fmt.Errorf("%s: schema %d; this version of dray reads %d", filepath.Join(dir, RunFile), run.Schema, Schema)
	}
	return &run, nil
}

// ExitCode is the verdicts' exit code: 0, 4 or 5.
func (d *Data) ExitCode() int { return verdict.ExitCode(d.Verdicts) }

// regular refuses anything but a regular file of acceptable size: a FIFO would block,
// and a device never end.
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read run directory: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read run directory: %s is not a regular file", path)
	case info.Size() > maxRecords:
		return nil, fmt.Errorf("read run directory: %s is larger than %d MiB", path, maxRecords>>20)
	}
	return info, nil
}

func readFile(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	info, err := regular(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read run directory: %s is larger than %d MiB", path, maxFile>>20)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read run directory: %w", err)
	}
	return b, nil
}

func readJSON(dir, name string, to any) error {
	b, err := readFile(dir, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// readRecords reads the records of one run: it cannot judge a file that mixes runs, or
// that has two trials with one name.
func readRecords(path, run string) ([]record.Trial, []string, error) {
	if _, err := regular(path); err != nil {
		return nil, nil, err
	}
	trials, warnings, err := record.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for i, t := range trials {
		switch {
		case t.ID == "":
			return nil, nil, fmt.Errorf("%s: record %d has no id", path, i+1)
		case seen[t.ID]:
			return nil, nil, fmt.Errorf("%s: record %d has the same id, %q, as an earlier record", path, i+1, t.ID)
		case t.Run != run:
			return nil, nil, fmt.Errorf("%s: record %q belongs to run %q, but %s to run %q", path, t.ID, t.Run, RunFile, run)
		}
		seen[t.ID] = true
	}
	return trials, warnings, nil
}

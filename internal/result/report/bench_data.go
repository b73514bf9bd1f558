// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/result/record"
)

// BenchData is the parsed and summarised directory of a bench.
type BenchData struct {
	Dir    string
	Run    BenchRun
	Trials []record.Trial
	Matrix string // matrix.yaml verbatim; empty if there is none
	// Unfinished says that the run was interrupted, as in Warnings; empty: it was not.
	Unfinished string
	Warnings   []string
	Lines      []BenchLine
}

// IsBench reports whether a directory holds a bench.
func IsBench(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, BenchFile))
	return err == nil
}

// LoadBenchRun reads bench.json of a directory.
func LoadBenchRun(dir string) (*BenchRun, error) {
	var run BenchRun
	if err := readJSON(dir, BenchFile, &run); err != nil {
		return nil, err
	}
	if run.Schema != BenchSchema {
		return nil, fmt.Errorf("%s: schema %d; this version of dray reads %d", filepath.Join(dir, BenchFile), run.Schema, BenchSchema)
	}
	return &run, nil
}

// LoadBench reads the directory of a bench, finished or not.
func LoadBench(dir string) (*BenchData, error) {
	run, err := LoadBenchRun(dir)
	if err != nil {
		return nil, err
	}
	d := &BenchData{Dir: dir, Run: *run}
	text, err := readFile(dir, MatrixFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	d.Matrix = string(text)
	if d.Trials, d.Warnings, err = readRecords(filepath.Join(dir, RecordsFile), run.ID); err != nil {
		return nil, err
	}
	if run.Finished.IsZero() {
		d.Unfinished = fmt.Sprintf("The run was interrupted: %d of %d rounds are complete. `dray bench --resume %s` continues it.", run.Rounds, run.Matrix.Repetitions, dir)
		d.Warnings = append(d.Warnings, d.Unfinished)
	} else if run.Rounds < run.Matrix.Repetitions {
		d.Warnings = append(d.Warnings, fmt.Sprintf("The matrix's time limit allowed %d of %d rounds: more rounds would give narrower intervals.", run.Rounds, run.Matrix.Repetitions))
	}
	if run.NoLimit != "" {
		d.Warnings = append(d.Warnings, noLimit(run.NoLimit))
	}
	d.Lines = benchLines(d)
	return d, nil
}

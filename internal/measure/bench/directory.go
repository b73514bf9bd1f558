// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/result/report"
)

// Hash identifies a matrix by its file's text.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Dir is a bench's directory.
type Dir = rundir.Dir[report.BenchRun]

var layout = &rundir.Layout[report.BenchRun]{
	StateFile: report.BenchFile, RecordsFile: report.RecordsFile, Load: report.LoadBenchRun,
	Finished: func(run *report.BenchRun) bool { return !run.Finished.IsZero() },
	Known:    []string{report.MatrixFile},
}

// Begin creates a new run's directory; if it exists it must be empty.
func Begin(dir string, run *report.BenchRun, matrix []byte) (*Dir, error) {
	return layout.Begin(dir, run, map[string][]byte{report.MatrixFile: matrix})
}

// Resume opens the directory of an interrupted run.
func Resume(dir string) (*Dir, error) { return layout.Resume(dir) }

// Interrupted finds the newest unfinished run of a matrix by this version of
// dray on this machine below a directory; "" if there is none.
func Interrupted(parent, hash string, by report.Program, bootID string, seed uint64) string {
	dirs, err := filepath.Glob(filepath.Join(parent, "bench-*"))
	if err != nil {
		return ""
	}
	newest, found := time.Time{}, ""
	for _, dir := range dirs {
		run, err := report.LoadBenchRun(dir)
		if err != nil || run.Hash != hash || run.Program != by || run.Host.BootID != bootID || !run.Finished.IsZero() || seed != 0 && run.Seed != seed {
			continue
		}
		if run.Started.After(newest) && !rundir.AtWork(dir) {
			newest, found = run.Started, dir
		}
	}
	return found
}

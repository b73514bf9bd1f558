// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/measure/session"
	"github.com/drayage/dray/internal/result/report"
)

// Hash tells matrices apart: of the file's text.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Session is the directory of a bench.
type Session = session.Session[report.BenchRun]

var directories = &session.Kind[report.BenchRun]{
	StateFile: report.BenchFile, RecordsFile: report.RecordsFile, Load: report.LoadBenchRun,
	Finished: func(run *report.BenchRun) bool { return !run.Finished.IsZero() },
}

// Begin makes the directory of a new run, which must be empty or not there.
func Begin(dir string, run *report.BenchRun, matrix []byte) (*Session, error) {
	return directories.Begin(dir, run, map[string][]byte{report.MatrixFile: matrix})
}

// Resume takes an interrupted run up again.
func Resume(dir string) (*Session, error) { return directories.Resume(dir) }

// Interrupted finds the newest unfinished run of a matrix by this version of
// dray on this machine below a directory; "" where there is none.
func Interrupted(parent, hash string, by report.Program, bootID string) string {
	dirs, err := filepath.Glob(filepath.Join(parent, "bench-*"))
	if err != nil {
		return ""
	}
	newest, found := time.Time{}, ""
	for _, dir := range dirs {
		run, err := report.LoadBenchRun(dir)
		if err != nil || run.Hash != hash || run.Program != by || run.Host.BootID != bootID || !run.Finished.IsZero() {
			continue
		}
		if run.Started.After(newest) && !session.AtWork(dir) {
			newest, found = run.Started, dir
		}
	}
	return found
}

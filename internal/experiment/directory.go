// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/report"
)

// Session is a directory that a runner may write to.
type Session struct {
	Dir  string
	Run  *report.ExperimentsRun
	Sink *record.Writer
	Done map[string]bool // trials of earlier sessions
	lock *os.File
}

// ErrFinished says that a run has nothing left to do.
var ErrFinished = errors.New("the run is finished; `dray report` shows it")

// Begin makes the directory of a new run, which must be empty or not there.
func Begin(dir string, run *report.ExperimentsRun) (*Session, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := lock(dir)
	if err != nil {
		return nil, err
	}
	s := &Session{Dir: dir, Run: run, Done: map[string]bool{}, lock: f}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *Session) begin() (err error) {
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: name a new directory with --out, or go on with what it holds with --resume", s.Dir))
	}
	if err := s.Save(); err != nil {
		return err
	}
	s.Sink, err = record.Create(filepath.Join(s.Dir, report.RecordsFile))
	return err
}

// Resume takes an interrupted run up again.
func Resume(dir string) (*Session, error) {
	f, err := lock(dir)
	if err != nil {
		return nil, err
	}
	s := &Session{Dir: dir, Done: map[string]bool{}, lock: f}
	if err := s.resume(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *Session) resume() (err error) {
	if s.Run, err = report.LoadExperimentsRun(s.Dir); err != nil {
		return err
	}
	if !s.Run.Finished.IsZero() {
		return ErrFinished
	}
	path := filepath.Join(s.Dir, report.RecordsFile)
	var trials []record.Trial
	s.Sink, trials, err = record.Continue(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.Sink, err = record.Create(path)
	}
	for _, t := range trials {
		s.Done[t.ID] = true
	}
	return err
}

// Save writes the run's state whole or not at all.
func (s *Session) Save() error {
	text, err := json.MarshalIndent(s.Run, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(s.Dir, report.ExperimentsFile+".new")
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(s.Dir, report.ExperimentsFile))
}

// Close ends the session.
func (s *Session) Close() error { return errors.Join(s.Sink.Close(), s.lock.Close()) }

// lock keeps a second dray out of a directory for as long as the file is open.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: another dray is at work there (%w)", dir, err)
	}
	return f, nil
}

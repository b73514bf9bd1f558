// SPDX-License-Identifier: Apache-2.0

// Package session keeps the directory of a run that may be interrupted and taken
// up again: a file with the run's state, and the records of its trials.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/result/record"
)

// ErrFinished says that a run has nothing left to do.
var ErrFinished = errors.New("the run is finished; `dray report` shows it")

// Kind is how the directories of one kind of run are laid out. R is a run's state.
type Kind[R any] struct {
	StateFile   string // holds the state, as JSON
	RecordsFile string
	Load        func(dir string) (*R, error) // reads and checks the state
	Finished    func(*R) bool
}

// Session is a directory that a runner may write to, and nobody else meanwhile.
type Session[R any] struct {
	Dir  string
	Run  *R
	Sink *record.Writer
	Done map[string]bool // trials of earlier sessions
	// Earlier are the records of these.
	Earlier []record.Trial
	kind    *Kind[R]
	lock    *os.File
}

// Begin makes the directory of a new run, which must be empty or not there, with
// some files beside its own.
func (k *Kind[R]) Begin(dir string, run *R, files map[string][]byte) (*Session[R], error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return k.open(dir, func(s *Session[R]) error {
		s.Run = run
		return s.begin(files)
	})
}

// Resume takes an interrupted run up again.
func (k *Kind[R]) Resume(dir string) (*Session[R], error) {
	return k.open(dir, (*Session[R]).resume)
}

func (k *Kind[R]) open(dir string, fill func(*Session[R]) error) (*Session[R], error) {
	f, err := lock(dir)
	if err != nil {
		return nil, err
	}
	s := &Session[R]{Dir: dir, Done: map[string]bool{}, kind: k, lock: f}
	if err := fill(s); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *Session[R]) begin(files map[string][]byte) error {
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: name a new directory with --out, or go on with what it holds with --resume", s.Dir))
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.Dir, name), content, 0o644); err != nil {
			return err
		}
	}
	if err := s.Save(); err != nil {
		return err
	}
	var err error
	s.Sink, err = record.Create(filepath.Join(s.Dir, s.kind.RecordsFile))
	return err
}

func (s *Session[R]) resume() (err error) {
	if s.Run, err = s.kind.Load(s.Dir); err != nil {
		return err
	}
	if s.kind.Finished(s.Run) {
		return ErrFinished
	}
	path := filepath.Join(s.Dir, s.kind.RecordsFile)
	s.Sink, s.Earlier, err = record.Continue(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.Sink, err = record.Create(path)
	}
	for _, t := range s.Earlier {
		s.Done[t.ID] = true
	}
	return err
}

// Save writes the run's state whole or not at all.
func (s *Session[R]) Save() error {
	text, err := json.MarshalIndent(s.Run, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir, s.kind.StateFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Close ends the session.
func (s *Session[R]) Close() error { return errors.Join(s.Sink.Close(), s.lock.Close()) }

// AtWork reports whether a session holds the directory, or it cannot be told.
func AtWork(dir string) bool {
	f, err := lock(dir)
	if err == nil {
		f.Close()
	}
	return err != nil
}

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

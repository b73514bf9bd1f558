// SPDX-License-Identifier: Apache-2.0

// Package rundir keeps the directory of a run that can be resumed: a file with
// the run's state, and the records of its trials.
package rundir

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

// ErrFinished means that a run has nothing left to do.
var ErrFinished = errors.New("the run is finished; `dray report` shows it")

// Layout is the directory layout of one kind of run. R is the run's state.
type Layout[R any] struct {
	StateFile   string // holds the state, as JSON
	RecordsFile string
	Load        func(dir string) (*R, error) // reads and checks the state
	Finished    func(*R) bool
}

// Dir is a run directory that this process has locked for writing.
type Dir[R any] struct {
	Path    string
	Run     *R
	Sink    *record.Writer
	Done    map[string]bool // ids of the trials made before this process
	Earlier []record.Trial  // their records
	layout  *Layout[R]
	lock    *os.File
}

// Begin creates the directory of a new run, with the given files in addition to
// its own. If the directory exists, it must be empty.
func (l *Layout[R]) Begin(path string, run *R, files map[string][]byte) (*Dir[R], error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return l.open(path, func(d *Dir[R]) error {
		d.Run = run
		return d.begin(files)
	})
}

// Resume opens the directory of an interrupted run.
func (l *Layout[R]) Resume(path string) (*Dir[R], error) {
	return l.open(path, (*Dir[R]).resume)
}

func (l *Layout[R]) open(path string, fill func(*Dir[R]) error) (*Dir[R], error) {
	f, err := lock(path)
	if err != nil {
		return nil, err
	}
	d := &Dir[R]{Path: path, Done: map[string]bool{}, layout: l, lock: f}
	if err := fill(d); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return d, nil
}

func (d *Dir[R]) begin(files map[string][]byte) error {
	if entries, err := os.ReadDir(d.Path); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: name a new directory with --out, or continue its run with --resume", d.Path))
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(d.Path, name), content, 0o644); err != nil {
			return err
		}
	}
	if err := d.Save(); err != nil {
		return err
	}
	var err error
	d.Sink, err = record.Create(filepath.Join(d.Path, d.layout.RecordsFile))
	return err
}

func (d *Dir[R]) resume() (err error) {
	if d.Run, err = d.layout.Load(d.Path); err != nil {
		return err
	}
	if d.layout.Finished(d.Run) {
		return ErrFinished
	}
	path := filepath.Join(d.Path, d.layout.RecordsFile)
	d.Sink, d.Earlier, err = record.Continue(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.Sink, err = record.Create(path)
	}
	for _, t := range d.Earlier {
		d.Done[t.ID] = true
	}
	return err
}

// Save writes the run's state atomically.
func (d *Dir[R]) Save() error {
	text, err := json.MarshalIndent(d.Run, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(d.Path, d.layout.StateFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Close unlocks the directory.
func (d *Dir[R]) Close() error { return errors.Join(d.Sink.Close(), d.lock.Close()) }

// AtWork reports whether another process has locked the directory, or the lock
// cannot be read.
func AtWork(dir string) bool {
	f, err := lock(dir)
	if err == nil {
		f.Close()
	}
	return err != nil
}

// lock keeps a second dray out of the directory while the returned file is open.
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

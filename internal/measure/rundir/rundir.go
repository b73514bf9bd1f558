// SPDX-License-Identifier: Apache-2.0

// Package rundir keeps the directory of a run that can be resumed: a file with
// the run's state, and the records of its trials.
package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
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
	Known       []string // the other files that the results need
}

// Dir is a run directory that this process has locked for writing.
type Dir[R any] struct {
	Path    string
	Run     *R
	Sink    *record.Writer
	Done    map[string]bool // ids of the trials made before this process
	Earlier []record.Trial  // their records
	// Rescued says that somebody has removed or blocked the directory, and where the files
	// are now, which may be in another Path; nil: nobody has.
	Rescued error
	layout  *Layout[R]
	files   map[string][]byte // the other files that the results need
	lock    *os.File          // closed, it is unlocked
}

// fileLock is locked while a dray writes to the directory. It is for its user alone:
// anybody who can read the directory could lock that.
const fileLock = ".lock"

// Begin creates the directory of a new run, with the given files in addition to
// its own. If the directory exists, it must be empty.
func (l *Layout[R]) Begin(path string, run *R, files map[string][]byte) (*Dir[R], error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	if err := checkEmpty(path); err != nil { // before the lock's file is made
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
	lock, err := lockIn(path, unix.O_NOFOLLOW)
	if errors.Is(err, host.ErrLocked) {
		return nil, fmt.Errorf("%s: another dray is working in it (%w)", path, err)
	}
	if err != nil {
		return nil, err
	}
	d := &Dir[R]{Path: path, Done: map[string]bool{}, layout: l, lock: lock}
	if err := fill(d); err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// lockIn makes the lock's file in a directory, if it is missing, and locks it.
func lockIn(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, fileLock), os.O_RDWR|os.O_CREATE|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := host.TryLock(f, unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (d *Dir[R]) begin(files map[string][]byte) error {
	if err := checkEmpty(d.Path); err != nil {
		return err
	}
	d.files = files
	err := errors.Join(d.writeKnown(), d.save())
	if err != nil {
		return err
	}
	d.Sink, err = record.Create(filepath.Join(d.Path, d.layout.RecordsFile))
	return err
}

// checkEmpty rejects a directory that holds more than a lock.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != fileLock {
			return fmt.Errorf("%s is not empty: name a new directory with --out, or continue its run with --resume", dir)
		}
	}
	return nil
}

func (d *Dir[R]) resume() (err error) {
	if d.Run, err = d.layout.Load(d.Path); err != nil {
		return err
	}
	if d.layout.Finished(d.Run) {
		return ErrFinished
	}
	d.files = map[string][]byte{}
	for _, name := range d.layout.Known {
		if d.files[name], err = os.ReadFile(filepath.Join(d.Path, name)); err != nil {
			delete(d.files, name) // Load says so, if the results need it
		}
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

// Close unlocks the directory.
func (d *Dir[R]) Close() error {
	defer d.lock.Close()
	return d.Sink.Close()
}

// AtWork reports whether another process has locked the directory, or the lock
// cannot be read.
func AtWork(dir string) bool {
	path := filepath.Join(dir, fileLock)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	unlock, err := host.TryLockFile(path, unix.LOCK_EX)
	if err == nil {
		unlock()
	}
	return err != nil
}

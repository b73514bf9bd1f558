// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Save writes the run's state atomically. If somebody has removed the directory, or its
// files, it writes them all again: the results of hours must not be lost with it. If that
// is impossible, or another run or user has the directory now, they go to a temporary one.
func (d *Dir[R]) Save() error {
	var err error
	if d.holds(d.Path) {
		if err = d.save(); err == nil && d.whole() {
			return nil
		}
	}
	lost := d.Path
	if again := d.rescue(lost); again == nil {
		d.Rescued = fmt.Errorf("files of %s were removed during the run; they are written again", lost)
		return nil
	} else if err == nil {
		err = again
	}
	other, failed := os.MkdirTemp("", "dray-run-")
	if failed == nil {
		failed = d.rescue(other)
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	d.Rescued = fmt.Errorf("nothing can be written to %s any more (%w); the files of the run are in %s", lost, err, other)
	return nil
}

func (d *Dir[R]) save() error {
	text, err := json.MarshalIndent(d.Run, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(d.Path, d.layout.StateFile)
	_ = os.Remove(path + ".new") // of a dray that was killed
	if err := create(path+".new", append(text, '\n')); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// create writes a new file, through no link.
func create(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// holds reports whether the lock of the directory at path is this run's.
func (d *Dir[R]) holds(path string) bool {
	own, err := d.lock.Stat()
	there, absent := os.Lstat(filepath.Join(path, fileLock))
	return err == nil && absent == nil && os.SameFile(own, there)
}

// occupy locks a directory for the run, unless it is another run's or another user's.
func (d *Dir[R]) occupy(path string) error {
	if d.holds(path) {
		return nil
	}
	is, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if owner, ok := is.Sys().(*syscall.Stat_t); !is.IsDir() || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory of this user", path)
	}
	lock, err := lockIn(path, os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s has another run: %w", path, err)
	}
	if err != nil {
		return err
	}
	d.lock.Close()
	d.lock = lock
	return nil
}

// whole reports whether the directory has all files of the run.
func (d *Dir[R]) whole() bool {
	for name := range d.files {
		if _, err := os.Stat(filepath.Join(d.Path, name)); err != nil {
			return false
		}
	}
	return d.Sink.At(filepath.Join(d.Path, d.layout.RecordsFile))
}

// rescue writes what a directory lacks of the run's files, and continues there.
func (d *Dir[R]) rescue(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := d.occupy(path); err != nil {
		return err
	}
	d.Path = path
	if err := d.writeKnown(); err != nil {
		return err
	}
	if err := d.Sink.MoveTo(filepath.Join(path, d.layout.RecordsFile)); err != nil {
		return err
	}
	return d.save()
}

// writeKnown writes the files that the results need, unless they are there.
func (d *Dir[R]) writeKnown() error {
	for name, content := range d.files {
		path := filepath.Join(d.Path, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := create(path, content); err != nil {
			return err
		}
	}
	return nil
}

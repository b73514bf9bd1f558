// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// Save writes the run's state atomically. If somebody has removed the directory, or its
// files, it writes them all again: the results of hours must not be lost with it. If that
// is impossible, they go to a temporary directory.
func (d *Dir[R]) Save() error {
	err := d.save()
	if err == nil && d.whole() {
		return nil
	}
	lost := d.Path
	if again := d.rescue(lost); again == nil {
		d.Rescued = fmt.Errorf("somebody removed files of %s during the run; they are written again", lost)
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
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
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
	lock := filepath.Join(path, fileLock)
	if _, err := os.Lstat(lock); errors.Is(err, fs.ErrNotExist) {
		unlock, err := host.TryLockFile(lock, unix.LOCK_EX)
		if err != nil {
			return err
		}
		d.unlock()
		d.unlock = unlock
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
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
)

// MaxLine limits one record's line, in bytes. Writer does not write a longer one, and
// Read does not read it.
const MaxLine = 8 << 20

// Writer appends trials to a records file, one line of JSON each. It is safe for
// concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
	err  error // the first failed write: the file's tail is then unknown
}

// Create makes a new records file, and fails if the file exists: a file holds one run,
// and only the last line can be torn.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create records file: %w", err)
	}
	return &Writer{file: f}, nil
}

// Write appends one trial and returns once it is on disk. After a failed write every
// later one fails too, so that no line follows a torn one.
func (w *Writer) Write(t Trial) error {
	t.Schema = Schema
	line, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode trial %s: %w", t.ID, err)
	}
	line = append(line, '\n')
	if len(line) > MaxLine {
		return fmt.Errorf("trial %s takes %d bytes, more than the %d of a line", t.ID, len(line), MaxLine)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if _, err := w.file.Write(line); err != nil {
		w.err = fmt.Errorf("write trial %s: %w", t.ID, err)
		return w.err
	}
	if err := w.file.Sync(); err != nil {
		w.err = fmt.Errorf("write trial %s to disk: %w", t.ID, err)
		return w.err
	}
	return nil
}

// At reports whether the records file is at that path, where somebody may have removed it.
func (w *Writer) At(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at(path)
}

func (w *Writer) at(path string) bool {
	own, err := w.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(own, there)
}

// MoveTo copies the records to a new file, unless that is theirs already, and continues
// there. They may be in a file that has been removed.
func (w *Writer) MoveTo(path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at(path) {
		return nil
	}
	to, err := Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to.file, io.NewSectionReader(w.file, 0, math.MaxInt64)); err != nil {
		return errors.Join(fmt.Errorf("copy the records to %s: %w", path, err), to.Close(), os.Remove(path))
	}
	w.file.Close()
	w.file = to.file
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

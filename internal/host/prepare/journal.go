// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxJournal bounds the journal in bytes: one of a thousand interrupts has a tenth.
const maxJournal = 4 << 20

// entry is one line of the journal. The last line of a key counts.
type entry struct {
	Boot string `json:"boot"` // of the kernel: a reboot resets every setting
	Key  Key    `json:"key"`
	From string `json:"from"`
	To   string `json:"to"`
	Done bool   `json:"done,omitempty"` // To is what the kernel made of it
}

// journal is the file that holds former values. It need not survive a power cut, which
// resets every setting as well.
type journal struct{ path string }

// add appends a line, in one write.
func (j journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// load is the journal's entries of this boot, one a key, in order of their first
// change; none if there is no journal.
func (j journal) load(boot string) ([]entry, error) {
	f, err := os.OpenFile(j.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxJournal+1))
	if err != nil {
		return nil, err
	}
	entries, err := parseJournal(text, boot)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; nothing was restored: compare it with this host by hand, then remove it", j.path, err)
	}
	return entries, nil
}

// parseJournal checks every line. It skips a last line without its newline: nothing
// was changed before that write ended.
func parseJournal(text []byte, boot string) ([]entry, error) {
	if len(text) > maxJournal {
		return nil, fmt.Errorf("longer than %d bytes", maxJournal)
	}
	lines := bytes.Split(text, []byte("\n"))
	at := map[Key]int{}
	var all []entry
	for i, line := range lines[:len(lines)-1] {
		e, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if e.Boot != boot {
			continue
		}
		if n, known := at[e.Key]; known {
			all[n] = e
			continue
		}
		at[e.Key] = len(all)
		all = append(all, e)
	}
	return all, nil
}

func parseEntry(line []byte) (entry, error) {
	var e entry
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("malformed: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("malformed: more follows the JSON object")
	}
	if err := e.Key.check(); err != nil {
		return e, err
	}
	return e, errors.Join(e.Key.legal(e.From), e.Key.legal(e.To))
}

// keep replaces the journal by these entries; without any, it removes it.
func (j journal) keep(entries []entry) error {
	if len(entries) == 0 {
		err := os.Remove(j.path)
		if missing(err) {
			return nil
		}
		return err
	}
	next := journal{j.path + ".next"}
	if err := next.keep(nil); err != nil { // of a killed writer
		return err
	}
	for _, e := range entries {
		if err := next.add(e); err != nil {
			return err
		}
	}
	return os.Rename(next.path, j.path)
}

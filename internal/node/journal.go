// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// maxJournal bounds the journal to read; a chain of a thousand links needs a tenth.
const maxJournal = 64 << 20

// entry is one line of a journal. Exactly one field is set.
type entry struct {
	Owner  *owner          `json:"owner,omitempty"`
	Make   []step.Resource `json:"make,omitempty"`
	Commit bool            `json:"commit,omitempty"`
	Remove bool            `json:"remove,omitempty"` // the chain is being removed: it is no longer committed
}

func (e entry) empty() bool { return e.Owner == nil && len(e.Make) == 0 && !e.Commit && !e.Remove }

// owner is the process that makes the chain.
type owner struct {
	Process host.ProcessID `json:"process"`
	Command string         `json:"command"` // "up", "run"
	Since   time.Time      `json:"since"`
}

func (o *owner) String() string { return fmt.Sprintf("dray %s, process %d", o.Command, o.Process.PID) }

// journal is the append-only list of what a chain has made or may have made.
type journal struct {
	file *os.File
}

// contents is a journal's content.
type contents struct {
	Owner     *owner
	Resources []step.Resource // in creation order
	Committed bool
	// Damage is why a part of it could not be read, or is from a newer version; the
	// rest counts.
	Damage error
}

func createJournal(path string, o owner) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f}
	if err := j.write(entry{Owner: &o}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// openJournal opens an existing journal to append.
func openJournal(path string) (*journal, error) {
	f, err := host.OpenRegular(path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	if err := cutTorn(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &journal{file: f}, nil
}

// cutTorn removes a last line without its newline, as a killed writer leaves it: what is
// appended to it could not be read.
func cutTorn(f *os.File) error {
	text, err := io.ReadAll(io.LimitReader(f, maxJournal))
	whole := bytes.LastIndexByte(text, '\n') + 1
	if err != nil || whole == len(text) {
		return err
	}
	return f.Truncate(int64(whole))
}

// Append makes resources durable; it implements step.Journal.
func (j *journal) Append(r ...step.Resource) error {
	if len(r) == 0 {
		return nil
	}
	return j.write(entry{Make: r})
}

// commit records that the chain is complete and stays.
func (j *journal) commit() error { return j.write(entry{Commit: true}) }

// revoke records that the chain is being removed: the rest of an interrupted
// removal is then a leftover, not a running chain.
func (j *journal) revoke() error { return j.write(entry{Remove: true}) }

func (j *journal) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	before, err := j.file.Stat()
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil { // on a full disk a part of the line may be there
		return fmt.Errorf("write journal: %w", errors.Join(err, j.file.Truncate(before.Size())))
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }

// readJournal reads a chain's journal. One without content is damaged if the chain has a
// state, which comes after the journal's first line.
func (n *Node) readJournal(name string) (contents, error) {
	c, err := readJournal(n.journalFile(name))
	if err != nil || c.Owner != nil || c.Damage != nil {
		return c, err
	}
	if _, err := os.Lstat(filepath.Join(n.dir(name), fileState)); err == nil {
		c.Damage = errors.New(n.journalFile(name) + " names no owner")
	}
	return c, nil
}

// readJournal reads a journal. It skips a last line without its newline: that write
// was cut off before the declared thing was made.
func readJournal(path string) (contents, error) {
	text, err := host.ReadRegular(path, maxJournal)
	switch {
	case host.IsDamaged(err):
		return contents{Damage: err}, nil
	case err != nil:
		return contents{}, err
	}
	c := parseJournal(text)
	if c.Damage != nil {
		c.Damage = fmt.Errorf("%s: %w", path, c.Damage)
	}
	return c, nil
}

// mostMalformed bounds the lines to skip: what follows so many is not read.
const mostMalformed = 1000

func parseJournal(text []byte) (c contents) {
	malformed := 0
	for n := 1; malformed < mostMalformed; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			break
		}
		text = rest
		var e entry
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		err := dec.Decode(&e)
		if err == nil && e.empty() {
			err = errors.New("it has no entry")
		}
		if err != nil {
			if malformed++; c.Damage == nil {
				c.Damage = fmt.Errorf("line %d is malformed: %w", n, err)
			}
			if json.Unmarshal(line, &e) != nil { // not even as one of a newer version
				continue
			}
		}
		if e.Owner != nil {
			c.Owner = e.Owner
		}
		c.Resources = append(c.Resources, e.Make...)
		c.Committed = (c.Committed || e.Commit) && !e.Remove
	}
	if malformed > 1 {
		c.Damage = fmt.Errorf("%w (the first of %d such lines)", c.Damage, malformed)
	}
	return c
}

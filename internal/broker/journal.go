// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/broker/wire"
)

// entry is what the journal holds of one link: all that a broker needs to serve
// it again, and to know the memory that its ends are live on.
type entry struct {
	Link       Link   `json:"link"`
	Generation uint32 `json:"generation"` // the highest that was given out
	// The memory of that generation; Inode 0: none that could be adopted.
	Boot     string        `json:"boot,omitempty"` // an inode means nothing after a restart of the host
	Device   uint64        `json:"device,omitempty"`
	Inode    uint64        `json:"inode,omitempty"`
	Pages    string        `json:"pages,omitempty"`
	Geometry wire.Geometry `json:"geometry"`
}

// journal is a directory with one file per link, each replaced whole.
type journal struct {
	dir  string
	slot chan struct{} // bounds how many are synced at a time
}

const (
	entrySuffix = ".json"
	// maxEntry bounds what is read back, in bytes.
	maxEntry = 1 << 20
)

func openJournal(dir string) (*journal, error) {
	j := &journal{dir: filepath.Join(dir, "links"), slot: make(chan struct{}, 4)}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return j, nil
}

// path has a link's name in it, whatever that is made of.
func (j *journal) path(link string) string {
	return filepath.Join(j.dir, "link-"+url.PathEscape(link)+entrySuffix)
}

// save replaces the entry of a link.
func (j *journal) save(e *entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.slot <- struct{}{}
	defer func() { <-j.slot }()
	if err := replace(j.path(e.Link.Name), b); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// replace writes a file such that a reader finds the old or the new one.
func replace(path string, b []byte) (err error) {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (j *journal) remove(link string) error {
	if err := os.Remove(j.path(link)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// load reads every entry. An entry that cannot be read is an error of its own,
// and costs the other links nothing.
func (j *journal) load() ([]*entry, error) {
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var all []*entry
	var errs []error
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), entrySuffix) {
			continue
		}
		e, err := readEntry(filepath.Join(j.dir, file.Name()))
		if err != nil {
			errs = append(errs, fmt.Errorf("journal: %s: %w", file.Name(), err))
			continue
		}
		all = append(all, e)
	}
	return all, errors.Join(errs...)
}

// generation is the highest that the journal knows of a link; 0 where it knows none.
func (j *journal) generation(link string) uint32 {
	e, err := readEntry(j.path(link))
	if err != nil {
		return 0
	}
	return e.Generation
}

func readEntry(path string) (*entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxEntry {
		return nil, errors.New("longer than any entry")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	e := new(entry)
	if err := json.Unmarshal(b, e); err != nil {
		return nil, err
	}
	if err := e.Link.check(); err != nil {
		return nil, err
	}
	return e, nil
}

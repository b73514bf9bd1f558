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

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// entry is the journal of one link. With it, a broker can serve the link
// again, and recognize the memory that its ends are live on.
type entry struct {
	Link       Link   `json:"link"`
	Generation uint32 `json:"generation"` // the highest one issued
	// The memory of that generation; Inode 0: none to adopt.
	Boot     string        `json:"boot,omitempty"` // an inode is meaningless after a reboot
	Device   uint64        `json:"device,omitempty"`
	Inode    uint64        `json:"inode,omitempty"`
	Pages    string        `json:"pages,omitempty"`
	Geometry wire.Geometry `json:"geometry"`
}

// journal is a directory with one file per link, each replaced atomically.
type journal struct {
	dir  string
	slot chan struct{} // bounds how many are synced at once
}

const (
	entryPrefix = "link-"
	entrySuffix = ".json"
	// damagedSuffix follows that of an entry that is set aside.
	damagedSuffix = ".damaged"
	// maxEntry bounds the size of an entry read back, in bytes.
	maxEntry = 1 << 20
)

func openJournal(dir string) (*journal, error) {
	j := &journal{dir: filepath.Join(dir, "links"), slot: make(chan struct{}, 4)}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return j, j.clear()
}

// clear removes what a broker that was killed had not finished writing.
func (j *journal) clear() error {
	unfinished, err := filepath.Glob(filepath.Join(j.dir, entryPrefix+"*"+host.Unfinished))
	for _, path := range unfinished {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return err
}

// path encodes the link's name, so that any name is safe.
func (j *journal) path(link string) string {
	return filepath.Join(j.dir, entryPrefix+url.PathEscape(link)+entrySuffix)
}

// save replaces the entry of a link.
func (j *journal) save(e *entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.slot <- struct{}{}
	defer func() { <-j.slot }()
	if err := host.ReplaceFileSynced(j.path(e.Link.Name), b, 0o600); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// setAside keeps a damaged entry where nothing reads it, until the link is removed.
func (j *journal) setAside(link string) (aside string, err error) {
	aside = j.path(link) + damagedSuffix
	return aside, errors.Join(os.RemoveAll(aside), os.Rename(j.path(link), aside))
}

func (j *journal) remove(link string) error {
	if err := errors.Join(os.RemoveAll(j.path(link)), os.RemoveAll(j.path(link)+damagedSuffix)); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// names are the links that have journal entries.
func (j *journal) names() ([]string, error) {
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var all []string
	for _, file := range files {
		escaped, isEntry := strings.CutSuffix(strings.TrimPrefix(file.Name(), entryPrefix), entrySuffix)
		name, err := url.PathUnescape(escaped)
		if isEntry && err == nil && file.Name() == filepath.Base(j.path(name)) {
			all = append(all, name)
		}
	}
	return all, nil
}

// load reads the entry of a link. The error is fs.ErrNotExist if there is none.
func (j *journal) load(link string) (*entry, error) {
	e, err := readEntry(j.path(link))
	if err == nil && e.Link.Name != link {
		err = host.Damaged(fmt.Errorf("the entry belongs to link %q", e.Link.Name))
	}
	if err != nil {
		return nil, fmt.Errorf("journal: link %s: %w", link, err)
	}
	return e, nil
}

// generation is the link's highest number in the journal; 0 if there is none that is whole.
func (j *journal) generation(link string) (uint32, error) {
	e, err := j.load(link)
	switch {
	case err == nil:
		return e.Generation, nil
	case errors.Is(err, fs.ErrNotExist) || host.IsDamaged(err):
		return 0, nil
	}
	return 0, err
}

func readEntry(path string) (*entry, error) {
	e := new(entry)
	if err := host.ReadJSON(path, maxEntry, e); err != nil {
		return nil, err
	}
	if err := e.Link.check(); err != nil {
		return nil, err
	}
	return e, nil
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/underlay"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// Files of a chain's directory.
const (
	fileLock    = "lock"
	fileJournal = "journal.jsonl"
	fileChain   = "chain.yaml"
	fileState   = "state.json"
	fileStatus  = "status.json"
)

// State is what a later command needs to know of a chain that is up.
type State struct {
	Created   time.Time                    `json:"created"`
	Boot      string                       `json:"boot"` // boot id; another one means that the host restarted
	Plan      *plan.Plan                   `json:"plan"`
	Sandboxes map[string]*runtime.Sandbox  `json:"sandboxes"` // by function
	Reports   map[string]*transport.Report `json:"reports"`   // by link
	Underlay  *underlay.Report             `json:"underlay,omitempty"`
	// Revision counts the changes to a chain that is up, which its supervisor takes over.
	Revision int `json:"revision,omitempty"`
	// Held are functions that must not run, since they are about to be removed.
	Held []string `json:"held,omitempty"`
	// Moves is of the links that were to move to another transport, by link.
	Moves map[string]Moves `json:"moves,omitempty"`
}

// Moves counts what was tried with a link. What its transport has in the chain's
// directory and cgroups carries the number of the move that made it.
type Moves struct {
	Tried int `json:"tried"`
	At    int `json:"at"` // the move that the link is at; 0: where it was made
}

// shortHash tells strings apart if a name would be too long.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// writeJSON replaces a file atomically.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is malformed: %w", path, err)
	}
	return nil
}

// load reads back a chain that was committed.
func (n *Node) load(name string) (*Live, error) {
	dir := n.dir(name)
	l := &Live{node: n, dir: dir}
	var err error
	if l.Chain, err = chain.Load(filepath.Join(dir, fileChain)); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, fileState), &l.State); err != nil {
		return nil, err
	}
	if l.State.Plan == nil {
		return nil, fmt.Errorf("%s holds no plan: it is damaged, or the chain is still being made", filepath.Join(dir, fileState))
	}
	return l, nil
}

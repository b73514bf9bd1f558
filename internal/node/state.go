// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/underlay"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// Files of a chain's directory.
const (
	fileLock    = "lock"
	fileJournal = "journal.jsonl"
	fileChain   = "chain.yaml"
	fileState   = "state.json"
	fileStatus  = "status.json"
)

// dirMode is the mode of a chain's directory, and of those in it: functions find their sockets there.
const dirMode = 0o711

// State is what a later command needs to know of a running chain.
type State struct {
	Created   time.Time                    `json:"created"`
	Boot      string                       `json:"boot"` // boot id; another one means that the host restarted
	Plan      *plan.Plan                   `json:"plan"`
	Sandboxes map[string]*runtime.Sandbox  `json:"sandboxes"` // by function
	Reports   map[string]*transport.Report `json:"reports"`   // by link
	Underlay  *underlay.Report             `json:"underlay,omitempty"`
	// Revision counts the changes to a running chain; its supervisor adopts each.
	Revision int `json:"revision,omitempty"`
	// Held are functions that must not run because their removal is pending.
	Held []string `json:"held,omitempty"`
	// Moves records moves to another transport, finished or not, by link.
	Moves map[string]Moves `json:"moves,omitempty"`
	// Claimed are the CPUs that a change in progress, or one that failed, may use.
	Claimed []int `json:"claimed,omitempty"`
	// Coming are the links of such a change that lead to an interface of the host: no other
	// chain may get their addresses.
	Coming []plan.Link `json:"coming,omitempty"`
	// Left is what links may have left that an unfinished change removes or makes.
	Left map[string][]step.Resource `json:"left,omitempty"`
	// Unsettled are functions that a change started, until they have settled.
	Unsettled []string `json:"unsettled,omitempty"`
}

// leave records what may be left of a link if a change does not finish.
func (s *State) leave(link string, made []step.Resource) {
	if s.Left == nil {
		s.Left = map[string][]step.Resource{}
	}
	s.Left[link] = made
}

// claimedCPUs are the CPUs that no other chain may get.
func (s *State) claimedCPUs() []int {
	all := slices.Concat(s.Plan.ClaimedCPUs(), s.Claimed)
	slices.Sort(all)
	return slices.Compact(all)
}

// Moves counts a link's attempted moves. The transport's files and cgroups in the
// chain carry the number of the move that made them.
type Moves struct {
	Tried int `json:"tried"`
	At    int `json:"at"` // the link's current move; 0: as it was made
}

// shortHash distinguishes strings that make a name too long.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// maxState bounds each file of a chain's state in bytes; a chain of a thousand links
// needs a tenth.
const maxState = 64 << 20

// writeJSON replaces a file atomically, and whatever else is in its place.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return host.ReplaceFile(path, append(b, '\n'), 0o600)
}

func readJSON(path string, v any) error { return host.ReadJSON(path, maxState, v) }

// readState reads the state of a chain.
func (n *Node) readState(name string) (s State, err error) {
	path := filepath.Join(n.dir(name), fileState)
	if err := readJSON(path, &s); err != nil {
		return s, err
	}
	if s.Plan == nil {
		err = host.Damaged(fmt.Errorf("%s holds no plan: it is damaged, or the chain is still being created", path))
	}
	return s, err
}

// readChain reads the file of a chain. It is damaged if it is no YAML.
func (n *Node) readChain(name string) (source []byte, err error) {
	path := filepath.Join(n.dir(name), fileChain)
	if source, err = host.ReadRegular(path, maxState); err != nil {
		return nil, err
	}
	if _, fault := parse.Tree(path, source); fault != nil {
		return nil, host.Damaged(fault)
	}
	return source, nil
}

// refusedError says that this version accepts the file of a running chain no longer.
type refusedError struct {
	chain string
	err   error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("chain %s stays up, but this version of dray does not accept its file: only `dray down %[1]s` works (%v)", e.chain, e.err)
}

func (e *refusedError) Unwrap() error { return e.err }

// load reads a committed chain. The error is a *refusedError if only this version refuses it.
func (n *Node) load(name string) (*Live, error) {
	l := &Live{node: n, dir: n.dir(name)}
	source, err := n.readChain(name)
	if err != nil {
		return nil, err
	}
	if l.State, err = n.readState(name); err != nil {
		return nil, err
	}
	if l.Chain, err = chain.Parse(l.ChainFile(), source); err != nil {
		return nil, &refusedError{name, err}
	}
	l.State.Plan.PlaceIn(l.Chain)
	return l, nil
}

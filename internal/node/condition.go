// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/parse"
)

// Condition is the state of a chain.
type Condition string

const (
	Absent   Condition = "absent"
	Busy     Condition = "busy"     // another dray works on it
	Up       Condition = "up"       // committed
	Lost     Condition = "lost"     // committed, but the host has restarted since
	Leftover Condition = "leftover" // its maker, or who removed it, died on the way
	Broken   Condition = "broken"   // a file of its state cannot be read; down and gc remove it
	Foreign  Condition = "foreign"  // a directory of somebody else; it is left alone
)

// Found is a chain directory and its condition.
type Found struct {
	Chain     string    `json:"chain"`
	Condition Condition `json:"condition"`
	Detail    string    `json:"detail,omitempty"`
}

// inspect reports the condition of a chain. It changes nothing.
func (n *Node) inspect(name string) (Found, error) {
	found := Found{Chain: name, Condition: Absent}
	if !parse.ValidName(name) { // it becomes part of a path to remove
		return found, fmt.Errorf("%q is not a valid chain name", name)
	}
	if _, err := os.Stat(n.dir(name)); errors.Is(err, fs.ErrNotExist) {
		return found, nil
	} else if err != nil {
		return found, err
	}
	l, err := tryLock(n.lockFile(name), shared)
	switch {
	case errors.Is(err, errBusy):
		found.Condition = Busy
		if read, err := n.readJournal(name); err == nil && read.Owner != nil && !read.Committed {
			found.Detail = read.Owner.String()
		}
		return found, nil
	case err == nil:
		defer l.Close()
	case errors.Is(err, errNoLock):
		return n.judgeWithoutLock(name)
	default:
		return found, err
	}
	return n.judge(name)
}

func (n *Node) lockFile(name string) string    { return filepath.Join(n.dir(name), fileLock) }
func (n *Node) journalFile(name string) string { return filepath.Join(n.dir(name), fileJournal) }

// judge reads the condition of a chain that is not in use; the caller holds its
// lock, or there is none. It is an error if a file may be whole, but could not be read.
func (n *Node) judge(name string) (Found, error) {
	found := Found{Chain: name, Condition: Broken}
	read, err := n.readJournal(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return n.judgeWithoutJournal(name)
	case err != nil:
		return found, err
	case read.Damage != nil:
		found.Detail = read.Damage.Error()
		return found, nil
	}
	if read.Owner != nil {
		found.Detail = read.Owner.String()
	}
	if !read.Committed {
		found.Condition = Leftover
		return found, nil
	}
	found.Condition, found.Detail, err = n.judgeState(name, found.Detail)
	return found, err
}

// judgeState is the condition of a committed chain by its other files. A chain that an older
// version made stays up even if this one accepts its file no longer.
func (n *Node) judgeState(name, owner string) (Condition, string, error) {
	_, err := n.readChain(name)
	var s State
	if err == nil {
		s, err = n.readState(name)
	}
	switch {
	case host.IsDamaged(err) || errors.Is(err, fs.ErrNotExist):
		return Broken, err.Error(), nil
	case err != nil:
		return Broken, "", err
	}
	boot, err := host.BootID()
	switch {
	case err != nil:
		return Broken, "", err
	case boot != s.Boot:
		return Lost, "the host has restarted since", nil
	}
	return Up, owner, nil
}

// judgeWithoutJournal: a chain's directory has no journal only during its creation,
// or at the end of its removal. It then holds at most its lock. With a state, it has lost
// its journal; anything else is not ours.
func (n *Node) judgeWithoutJournal(name string) (Found, error) {
	entries, err := os.ReadDir(n.dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return Found{Chain: name, Condition: Absent}, nil
	}
	if err != nil {
		return Found{Chain: name, Condition: Broken}, err
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != fileLock }) && (len(entries) > 0 || n.madeDir(name)) {
		return Found{Chain: name, Condition: Leftover, Detail: "its creation or its removal was interrupted"}, nil
	}
	if s, err := n.readState(name); err == nil && s.Plan.Chain == name {
		return Found{Chain: name, Condition: Broken, Detail: n.journalFile(name) + " does not exist"}, nil
	}
	return Found{Chain: name, Condition: Foreign, Detail: n.dir(name) + " has no journal, so it is not a chain's directory and is left alone"}, nil
}

// madeDir reports whether a chain's directory has the mode that we give it.
func (n *Node) madeDir(name string) bool {
	info, err := os.Stat(n.dir(name))
	return err == nil && info.Mode().Perm() == dirMode
}

// judgeWithoutLock is judge for a chain that had no lock file. If it has one by now, another
// `dray` has just begun to make it.
func (n *Node) judgeWithoutLock(name string) (Found, error) {
	found, err := n.judge(name)
	if info, gone := os.Lstat(n.lockFile(name)); gone == nil && info.Mode().IsRegular() {
		return Found{Chain: name, Condition: Busy}, nil
	}
	return found, err
}

// Names are the names of this node's chains, sorted, whatever their condition; none
// if unreadable.
func (n *Node) Names() []string {
	entries, err := os.ReadDir(n.StateDir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && parse.ValidName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// List inspects every chain of this node, sorted by name.
func (n *Node) List() ([]Found, error) {
	list := []Found{}
	entries, err := os.ReadDir(n.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || !parse.ValidName(e.Name()) {
			continue
		}
		found, err := n.inspect(e.Name())
		if err != nil {
			found.Condition, found.Detail = Broken, err.Error()
		}
		if found.Condition != Absent { // as another process has just removed it
			list = append(list, found)
		}
	}
	return list, nil
}

// hold locks an existing chain for this process and reports its condition. It is an error
// if there is none, perhaps because another `dray` has just removed it.
func (n *Node) hold(ctx context.Context, name string) (*os.File, Found, error) {
	found, err := n.inspect(name)
	if err != nil {
		return nil, found, err
	}
	if found.Condition == Absent {
		return nil, found, &AbsentError{name}
	}
	l, err := waitLock(ctx, n.lockFile(name), exclusive, lockPatience)
	switch {
	case errors.Is(err, errBusy):
		return nil, found, busyError(found)
	case errors.Is(err, errNoLock):
		if found, err = n.judgeWithoutLock(name); found.Condition == Busy {
			return nil, found, busyError(found)
		}
	case err == nil:
		found, err = n.judge(name)
	}
	if err == nil && found.Condition == Absent {
		err = &AbsentError{name}
	}
	if err != nil && l != nil {
		l.Close()
		l = nil
	}
	return l, found, err
}

// AbsentError says that a chain does not exist, or no longer.
type AbsentError struct{ chain string }

func (e *AbsentError) Error() string {
	return fmt.Sprintf("no chain %q here; `dray status` lists them", e.chain)
}

func busyError(found Found) error {
	who := "is in use by another dray"
	if found.Detail != "" {
		who += " (" + found.Detail + ")"
	}
	return &ExistsError{found.Chain, who + "; wait for it, or stop it"}
}

// notUp says why a chain is not usable.
func notUp(found Found) error {
	switch found.Condition {
	case Lost:
		return fmt.Errorf("chain %s is lost: the host has restarted; run `dray down %s` and `dray up` again", found.Chain, found.Chain)
	case Broken:
		return fmt.Errorf("chain %s is broken: %s; `dray down %[1]s` removes it", found.Chain, found.Detail)
	case Foreign:
		return fmt.Errorf("%s", found.Detail)
	}
	return fmt.Errorf("no chain %q is up; `dray status` lists them", found.Chain)
}

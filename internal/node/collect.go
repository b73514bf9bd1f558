// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/step"
)

// Condition is what has become of a chain.
type Condition string

const (
	Absent   Condition = "absent"
	Busy     Condition = "busy"     // another dray works on it
	Up       Condition = "up"       // committed
	Lost     Condition = "lost"     // committed, but the host has restarted since
	Leftover Condition = "leftover" // its maker died before it was committed
)

// Found is one chain directory as it was found.
type Found struct {
	Chain     string    `json:"chain"`
	Condition Condition `json:"condition"`
	Detail    string    `json:"detail,omitempty"`
}

// inspect tells what has become of a chain. It takes no lasting lock.
func (n *Node) inspect(name string) (Found, error) {
	found := Found{Chain: name, Condition: Absent}
	if !chain.ValidName(name) { // it becomes part of a path that is removed
		return found, fmt.Errorf("%q is no chain's name", name)
	}
	dir := n.dir(name)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return found, nil
	} else if err != nil {
		return found, err
	}
	read, readErr := readJournal(filepath.Join(dir, fileJournal))
	if o := read.Owner; o != nil {
		found.Detail = fmt.Sprintf("dray %s, process %d", o.Command, o.Process.PID)
	}
	l, err := lock(filepath.Join(dir, fileLock), false)
	if errors.Is(err, errBusy) {
		found.Condition = Busy
		return found, nil
	}
	if err != nil {
		return found, err
	}
	defer l.Close()
	switch {
	case errors.Is(readErr, fs.ErrNotExist):
		// The journal goes after everything that it names.
		found.Condition = Leftover
	case readErr != nil:
		return found, fmt.Errorf("chain %s: %w", name, readErr)
	case !read.Committed:
		found.Condition = Leftover
	case !n.sameBoot(name):
		found.Condition, found.Detail = Lost, "the host has restarted since"
	default:
		found.Condition = Up
	}
	return found, nil
}

func (n *Node) sameBoot(name string) bool {
	var s State
	if err := readJSON(filepath.Join(n.dir(name), fileState), &s); err != nil {
		return false
	}
	boot, err := host.BootID()
	return err == nil && boot == s.Boot
}

// removeLeftover removes everything that the chain's journal names, and then
// its directory: the journal stays until all else is gone.
func (n *Node) removeLeftover(ctx context.Context, name string) error {
	dir := n.dir(name)
	read, err := readJournal(filepath.Join(dir, fileJournal))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("chain %s: %w", name, err)
	}
	if err := n.removeAll(ctx, name, read.Resources); err != nil {
		return fmt.Errorf("chain %s: %w (run `dray gc` to try again)", name, err)
	}
	return n.removeChainDir(ctx, dir)
}

// removeChainDir removes the directory with the journal as the last file.
func (n *Node) removeChainDir(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	runner := n.runner(nil)
	for _, e := range entries {
		if e.Name() == fileJournal || e.Name() == fileLock {
			continue
		}
		if err := runner.Remove(ctx, []step.Resource{host.DirResource(filepath.Join(dir, e.Name()))}); err != nil {
			return err
		}
	}
	return runner.Remove(ctx, []step.Resource{host.DirResource(dir)})
}

// List inspects every chain of this node, in order of name.
func (n *Node) List() ([]Found, error) {
	entries, err := os.ReadDir(n.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Found
	for _, e := range entries {
		if !e.IsDir() || !chain.ValidName(e.Name()) {
			continue
		}
		found, err := n.inspect(e.Name())
		if err != nil {
			found.Detail = err.Error()
		}
		list = append(list, found)
	}
	return list, nil
}

// Collect removes what uncommitted chains left whose maker is gone, and
// returns what it removed. Chains that are up, lost or in use stay.
func (n *Node) Collect(ctx context.Context) ([]Found, error) {
	var removed []Found
	var errs []error
	err := n.withRootLock(func() error {
		list, err := n.List()
		if err != nil {
			return err
		}
		for _, found := range list {
			if found.Condition != Leftover {
				continue
			}
			if err := n.removeLeftover(ctx, found.Chain); err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, found)
		}
		return nil
	})
	return removed, errors.Join(append(errs, err)...)
}

// Down removes a chain that is up, lost or left over.
func (n *Node) Down(ctx context.Context, name string) error {
	l, err := n.hold(name)
	if err != nil {
		return err
	}
	defer l.Close()
	return n.removeLeftover(ctx, name)
}

// hold locks an existing chain for this process.
func (n *Node) hold(name string) (*os.File, error) {
	found, err := n.inspect(name)
	if err != nil {
		return nil, err
	}
	if found.Condition == Absent {
		return nil, fmt.Errorf("no chain %q here; `dray status` lists them", name)
	}
	l, err := lock(filepath.Join(n.dir(name), fileLock), false)
	if errors.Is(err, errBusy) {
		return nil, &ExistsError{name, "is in use by another dray (" + found.Detail + "); wait for it, or stop it"}
	}
	return l, err
}

// Open reads a chain that is up, without locking it.
func (n *Node) Open(name string) (*Live, error) {
	found, err := n.inspect(name)
	if err != nil {
		return nil, err
	}
	switch found.Condition {
	case Up, Busy:
		return n.load(name)
	case Lost:
		return nil, fmt.Errorf("chain %s is lost: the host has restarted; run `dray down %s` and `dray up` again", name, name)
	}
	return nil, fmt.Errorf("no chain %q is up; `dray status` lists them", name)
}

// OpenLocked reads a chain that is up and keeps others from changing it until
// Release.
func (n *Node) OpenLocked(name string) (*Live, error) {
	held, err := n.hold(name)
	if err != nil {
		return nil, err
	}
	l, err := n.load(name)
	if err != nil {
		held.Close()
		return nil, err
	}
	l.lock = held
	return l, nil
}

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
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// Removed is a chain that was removed.
type Removed struct {
	Found
	Removal
}

// Removal is what the removal of a chain has kept.
type Removal struct {
	SetAside []string `json:"set_aside,omitempty"` // damaged files: where they are now
	Left     []string `json:"left,omitempty"`      // what was not removed, and why
}

// Collect removes uncommitted chains whose maker is gone, and returns them. Chains
// that are up, lost, broken or in use stay. What a killed probe has left is removed as well.
func (n *Node) Collect(ctx context.Context) ([]Removed, error) { return n.collect(ctx, Leftover) }

// CollectBroken is Collect that also removes broken chains: nothing else can be done with
// them. The logs of chains that did not come up go as well.
func (n *Node) CollectBroken(ctx context.Context) ([]Removed, error) {
	removed, err := n.collect(ctx, Leftover, Broken)
	return removed, errors.Join(err, os.RemoveAll(filepath.Join(n.StateDir, dirFailed)))
}

func (n *Node) collect(ctx context.Context, conditions ...Condition) ([]Removed, error) {
	removed := []Removed{}
	var errs []error
	err := n.withRootLock(ctx, func() error {
		list, err := n.List()
		if err != nil {
			return err
		}
		for _, found := range list {
			if !slices.Contains(conditions, found.Condition) {
				continue
			}
			one, err := n.collectOne(ctx, found.Chain, conditions)
			errs = append(errs, err)
			if one != nil {
				removed = append(removed, *one)
			}
		}
		return nil
	})
	return removed, errors.Join(append(errs, err, host.CollectProbes(ctx))...)
}

// collectOne removes a chain in one of these conditions, if it still is after locking.
func (n *Node) collectOne(ctx context.Context, name string, conditions []Condition) (*Removed, error) {
	l, found, err := n.hold(ctx, name)
	if l != nil {
		defer l.Close()
	}
	var exists *ExistsError
	var absent *absentError
	if errors.As(err, &exists) || errors.As(err, &absent) || err == nil && !slices.Contains(conditions, found.Condition) {
		return nil, nil // another process handled it
	}
	if err != nil {
		return nil, err
	}
	if found.Condition == Broken {
		n.stopSupervisor(name)
	}
	removal, err := n.remove(ctx, found)
	if err != nil {
		return nil, err
	}
	return &Removed{found, removal}, nil
}

// Down removes a chain that is up, lost, broken or left over. Once begun it is not
// cancelled; Collect cleans up after a killed one.
func (n *Node) Down(ctx context.Context, name string) (Removal, error) {
	l, found, err := n.hold(ctx, name)
	if l != nil {
		defer l.Close()
	}
	switch {
	case err != nil:
		return Removal{}, err
	case found.Condition == Foreign:
		return Removal{}, notUp(found)
	case found.Condition == Up || found.Condition == Lost:
		// On a full disk the removal makes room. If it is interrupted, the chain seems up, and
		// can be taken down again.
		if err := n.revoke(name); err != nil && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
			return Removal{}, err
		}
	}
	ctx = context.WithoutCancel(ctx)
	n.stopSupervisor(name)
	return n.remove(ctx, found)
}

// revoke cancels the commit of a chain.
func (n *Node) revoke(name string) error {
	j, err := openJournal(n.journalFile(name))
	if err != nil {
		return err
	}
	return errors.Join(j.revoke(), j.close())
}

// stopSupervisor lets the chain's supervisor stop the functions in order. Any that
// remain are killed later, with the chain's cgroup.
func (n *Node) stopSupervisor(name string) {
	var s Status
	if err := readJSON(filepath.Join(n.dir(name), fileStatus), &s); err != nil || !s.Supervisor.Signal(sigterm) {
		return
	}
	for deadline := time.Now().Add(stopGrace + time.Second); s.Supervisor.Alive() && time.Now().Before(deadline); {
		time.Sleep(lockPoll)
	}
}

// remove removes everything in the chain's journal, then its directory: the journal
// stays until the end. Of a broken chain it removes what it knows, and all processes.
func (n *Node) remove(ctx context.Context, found Found) (Removal, error) {
	name := found.Chain
	read, err := n.readJournal(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Removal{}, fmt.Errorf("chain %s: %w", name, err)
	}
	known, left := n.sortOut(name, read.Resources)
	if found.Condition == Broken && (err != nil || read.Damage != nil) {
		left = append(left, "what only the journal named, such as addresses on interfaces of the host")
	}
	if err := n.removeAll(ctx, name, known); err != nil {
		return Removal{}, fmt.Errorf("chain %s: %w (run `dray gc` to try again)", name, err)
	}
	removal := Removal{Left: left}
	if found.Condition == Broken || len(left) > 0 {
		if removal.SetAside, err = n.setAside(name); err != nil {
			return removal, fmt.Errorf("chain %s: %w", name, err)
		}
	}
	return removal, n.removeChainDir(ctx, n.dir(name))
}

// sortOut separates what a journal names that this version can remove as the chain's.
func (n *Node) sortOut(name string, all []step.Resource) (known []step.Resource, left []string) {
	removers := n.runner(nil).Removers
	for _, r := range all {
		switch {
		case removers[r.Kind] == nil:
			left = append(left, r.String()+": this version of dray does not know its kind")
		case !n.owns(name, r):
			left = append(left, r.String()+": it does not belong to the chain")
		default:
			known = append(known, r)
		}
	}
	return known, left
}

// removeChainDir removes the directory; the journal is the last file.
func (n *Node) removeChainDir(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := host.DropShortDirs(dir); err != nil {
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

// Open reads a running chain, without locking it.
func (n *Node) Open(name string) (*Live, error) {
	found, err := n.inspect(name)
	if err != nil {
		return nil, err
	}
	if found.Condition != Up && found.Condition != Busy {
		return nil, notUp(found)
	}
	return n.load(name)
}

// OpenLocked reads a running chain and locks it against changes until Release.
func (n *Node) OpenLocked(ctx context.Context, name string) (*Live, error) {
	held, found, err := n.hold(ctx, name)
	if err != nil {
		return nil, err
	}
	if found.Condition != Up {
		if held != nil {
			held.Close()
		}
		return nil, notUp(found)
	}
	l, err := n.load(name)
	if err != nil {
		held.Close()
		return nil, err
	}
	l.lock = held
	return l, nil
}

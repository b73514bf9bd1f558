// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
)

// Removed is a chain that was removed.
type Removed struct {
	Found
	Removal
}

// Removal is what the removal of a chain has kept.
type Removal struct {
	SetAside []string `json:"set_aside,omitempty"` // damaged files: where they are now
	Lost     []string `json:"lost,omitempty"`      // damaged files that could not be kept, and why
	Left     []string `json:"left,omitempty"`      // what was not removed, and why
}

// tell passes on what the removal of a chain has kept that no command asked for.
func (n *Node) tell(name string, kept Removal) {
	if n.Kept != nil && len(kept.SetAside)+len(kept.Lost)+len(kept.Left) > 0 {
		n.Kept(name, kept)
	}
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
	var absent *AbsentError
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
		n.tell(name, removal)
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
	made, unknown := read.Resources, []string(nil)
	if found.Condition == Broken && (err != nil || read.Damage != nil) {
		made, unknown = n.withoutJournal(ctx, name)
		made = append(made, read.Resources...)
	}
	known, left := n.sortOut(name, made)
	if err := n.removeAll(ctx, name, known); err != nil {
		return Removal{}, fmt.Errorf("chain %s: %w (run `dray gc` to try again)", name, err)
	}
	removal := Removal{Left: append(left, unknown...)}
	var damaged []string
	if found.Condition == Broken || len(left) > 0 {
		damaged = n.damaged(name)
	}
	for _, file := range damaged {
		if file != fileJournal {
			n.setAside(name, file, &removal)
		}
	}
	if err := n.emptyChainDir(ctx, name); err != nil {
		return removal, fmt.Errorf("chain %s: %w (run `dray gc` to try again)", name, err)
	}
	if slices.Contains(damaged, fileJournal) { // until here it shows whose directory it is
		n.setAside(name, fileJournal, &removal)
	}
	return removal, n.runner(nil).Remove(ctx, []step.Resource{host.DirResource(n.dir(name))})
}

// withoutJournal is what a chain whose journal is damaged has made outside its directory and its
// control groups: what container engines have of it, and its links by its state. unknown is
// what else there may be.
func (n *Node) withoutJournal(ctx context.Context, name string) (made []step.Resource, unknown []string) {
	for _, rt := range n.Runtimes {
		finder, ok := rt.(runtime.Finder)
		if !ok {
			continue
		}
		found, err := finder.Find(ctx, n.Cgroup(name))
		if err != nil {
			unknown = append(unknown, fmt.Sprintf("what %s has of it, if anything: %v", rt.Name(), err))
		}
		made = append(made, found...)
	}
	l, err := n.load(name)
	if err != nil { // the state suffices
		l = &Live{node: n, dir: n.dir(name), Chain: &chain.Chain{Name: name}}
		if l.State, err = n.readState(name); err != nil {
			return made, append(unknown, "what only the journal named, such as addresses on interfaces of the host")
		}
	}
	for _, pl := range l.State.Plan.Links {
		build, err := l.buildLink(pl, l.State.Moves[pl.Name].At, false)
		if err != nil {
			unknown = append(unknown, fmt.Sprintf("what link %s has made: %v", pl.Name, err))
			continue
		}
		made = append(made, resources(build.Steps)...)
	}
	for _, link := range slices.Sorted(maps.Keys(l.State.Left)) {
		made = append(made, l.State.Left[link]...)
	}
	return made, unknown
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

// emptyChainDir removes what is in a chain's directory but its journal: without it, its state,
// by which the next attempt knows the chain.
func (n *Node) emptyChainDir(ctx context.Context, name string) error {
	dir := n.dir(name)
	last := fileJournal
	if _, err := os.Lstat(n.journalFile(name)); errors.Is(err, fs.ErrNotExist) {
		last = fileState
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := host.DropShortDirs(dir); err != nil {
		return err
	}
	runner := n.runner(nil)
	for _, e := range entries {
		if e.Name() == last || e.Name() == fileLock {
			continue
		}
		if err := runner.Remove(ctx, []step.Resource{host.DirResource(filepath.Join(dir, e.Name()))}); err != nil {
			return err
		}
	}
	return nil
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

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// Collect removes uncommitted chains whose maker is gone, and returns them. Chains
// that are up, lost or in use stay. A broken chain is an error that says so. What a
// killed probe has left is removed as well.
func (n *Node) Collect(ctx context.Context) ([]Found, error) {
	removed := []Found{}
	var errs []error
	err := n.withRootLock(ctx, func() error {
		list, err := n.List()
		if err != nil {
			return err
		}
		for _, found := range list {
			switch found.Condition {
			case Broken:
				errs = append(errs, notUp(found))
			case Leftover:
				done, err := n.collectOne(ctx, found.Chain)
				errs = append(errs, err)
				if done {
					removed = append(removed, found)
				}
			}
		}
		return nil
	})
	return removed, errors.Join(append(errs, err, host.CollectProbes(ctx))...)
}

// collectOne removes a leftover, if it still is one after locking.
func (n *Node) collectOne(ctx context.Context, name string) (done bool, err error) {
	l, found, err := n.hold(ctx, name)
	if l != nil {
		defer l.Close()
	}
	var exists *ExistsError
	var absent *absentError
	if errors.As(err, &exists) || errors.As(err, &absent) || err == nil && found.Condition != Leftover {
		return false, nil // another process handled it
	}
	if err != nil {
		return false, err
	}
	err = n.removeLeftover(ctx, name)
	return err == nil, err
}

// Down removes a chain that is up, lost or left over. Once begun it is not
// cancelled; Collect cleans up after a killed one.
func (n *Node) Down(ctx context.Context, name string) error {
	l, found, err := n.hold(ctx, name)
	if l != nil {
		defer l.Close()
	}
	switch {
	case err != nil:
		return err
	case found.Condition == Broken:
		return notUp(found)
	case found.Condition == Up || found.Condition == Lost:
		if err := n.revoke(name); err != nil {
			return err
		}
	}
	ctx = context.WithoutCancel(ctx)
	n.stopSupervisor(name)
	return n.removeLeftover(ctx, name)
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

// removeLeftover removes everything in the chain's journal, then its directory: the
// journal stays until the end.
func (n *Node) removeLeftover(ctx context.Context, name string) error {
	read, err := readJournal(n.journalFile(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("chain %s: %w", name, err)
	}
	for _, r := range read.Resources {
		if !n.owns(name, r) {
			return fmt.Errorf("chain %s: its journal names %s, which does not belong to the chain: nothing was removed", name, r)
		}
	}
	if err := n.removeAll(ctx, name, read.Resources); err != nil {
		return fmt.Errorf("chain %s: %w (run `dray gc` to try again)", name, err)
	}
	return n.removeChainDir(ctx, n.dir(name))
}

// removeChainDir removes the directory; the journal is the last file.
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

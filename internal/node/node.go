// SPDX-License-Identifier: Apache-2.0

// Package node owns what Drayage makes on one host: it brings chains up and down,
// supervises their functions, and cleans up after dead processes.
//
// Everything of a chain is in <state>/<chain>/ and in the cgroup /dray/<chain>. A
// chain journals everything first; only a committed chain outlives the process that
// made it.
package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// DefaultStateDir is where chains are unless DRAY_STATE is set.
const DefaultStateDir = "/run/dray"

// Node is one host's chains.
type Node struct {
	StateDir   string
	Transports []transport.Driver
	Runtimes   []runtime.Runtime
	// Progress receives each step; it may be nil.
	Progress func(text string)
	// Kept receives what a chain has left that was removed for another command's sake, or did
	// not come up; it may be nil.
	Kept func(chain string, kept Removal)
	// Fault injects failures in tests; nil in production.
	Fault func(step.Step, step.Phase) error
}

// longestStateDir is the longest path of a state directory in bytes. The kernel takes 4095
// (PATH_MAX in linux/limits.h) with what is below it.
const longestStateDir = 2048

// StateDir is the state directory from the environment, with symbolic links
// resolved: it becomes part of the cgroups' names.
func StateDir() (string, error) {
	dir := os.Getenv("DRAY_STATE")
	if dir == "" {
		return DefaultStateDir, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("DRAY_STATE: %w", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil { // else it does not exist yet
		abs = real
	}
	if len(abs) > longestStateDir {
		return "", fmt.Errorf("DRAY_STATE: its path has %d bytes, and may have at most %d: choose a shorter one", len(abs), longestStateDir)
	}
	return abs, nil
}

func (n *Node) dir(chainName string) string { return filepath.Join(n.StateDir, chainName) }

// Cgroup is the root of a chain's cgroup tree. Chains of a non-default state
// directory get their own tree.
func (n *Node) Cgroup(chainName string) host.Cgroup {
	root := "/dray"
	if n.StateDir != DefaultStateDir {
		root += "-" + filepath.Base(n.StateDir) + "-" + shortHash(n.StateDir)
	}
	return host.Cgroup{Path: root}.Child(chainName)
}

func (n *Node) driver(name string) (transport.Driver, error) {
	for _, d := range n.Transports {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("no transport %q in this build", name)
}

func (n *Node) runtime(name chain.RuntimeName) (runtime.Runtime, error) {
	for _, r := range n.Runtimes {
		if r.Name() == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no runtime %q in this build", name)
}

func (n *Node) runner(j step.Journal) *step.Runner {
	removers := transport.AllRemovers(n.Transports...)
	for _, r := range n.Runtimes {
		maps.Copy(removers, r.Removers())
	}
	progress := func(s step.Step) {
		if n.Progress != nil {
			n.Progress(s.Name)
		}
	}
	return &step.Runner{Journal: j, Removers: removers, Progress: progress, Fault: n.Fault}
}

// spec describes a function for its runtime.
func (n *Node) spec(c *chain.Chain, p *plan.Plan, f chain.Function) runtime.Spec {
	s := runtime.Spec{
		Chain:    c.Name,
		Function: f,
		Dir:      filepath.Join(n.dir(c.Name), "fn", f.Name),
		State:    n.StateDir,
		Cgroup:   functionCgroup(n.Cgroup(c.Name), f.Name),
	}
	if placed := p.Function(f.Name); placed != nil {
		s.CPUs = placed.CPUs
	}
	return s
}

// spec describes a function of a chain with plumbed links for its runtime.
func (l *Live) spec(f chain.Function) runtime.Spec {
	s := l.node.spec(l.Chain, l.State.Plan, f)
	for _, p := range f.Ports {
		for _, report := range l.State.Reports {
			for _, v := range report.Vdevs {
				if v.Function == f.Name && v.Port == p.Name {
					s.Vdevs = append(s.Vdevs, v)
				}
			}
		}
	}
	return s
}

// removalTimeout bounds the removal of a chain: an engine's daemon may hang.
const removalTimeout = 2 * time.Minute

// enginesTimeout bounds the time for engines within it.
const enginesTimeout = time.Minute

// removeAll removes a chain's resources. The supervisor goes first, since it
// restarts things; then engines' resources, since the daemon of a client killed
// during creation works on. Then come all processes, so that nothing is in use; and
// the rest in reverse order of creation. If an engine hangs, all else goes, and the
// next attempt removes the engine's.
func (n *Node) removeAll(ctx context.Context, chainName string, made []step.Resource) error {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	r := n.runner(nil)
	root := n.Cgroup(chainName)
	engines, rest := n.splitEngines(made)
	if err := r.Remove(ctx, []step.Resource{host.CgroupResource(root.Child(supervisorGroup))}); err != nil {
		return err
	}
	hung := removeEngines(ctx, r, engines)
	if err := r.Remove(ctx, []step.Resource{host.CgroupResource(root)}); err != nil {
		return errors.Join(hung, err)
	}
	return errors.Join(hung, r.Remove(ctx, rest))
}

func removeEngines(ctx context.Context, r *step.Runner, engines []step.Resource) error {
	ctx, cancel := context.WithTimeout(ctx, enginesTimeout)
	defer cancel()
	return r.Remove(ctx, engines)
}

// splitEngines separates what only a runtime's engine can remove.
func (n *Node) splitEngines(made []step.Resource) (engines, rest []step.Resource) {
	kinds := step.Removers{}
	for _, rt := range n.Runtimes {
		maps.Copy(kinds, rt.Removers())
	}
	for _, r := range made {
		if _, ok := kinds[r.Kind]; ok {
			engines = append(engines, r)
		} else {
			rest = append(rest, r)
		}
	}
	return engines, rest
}

// owns reports whether a journaled resource can be the chain's: files below its
// directory, including those with a transport's own remover, and cgroups below its
// own. A network interface can have any name; its removal checks the MAC address.
func (n *Node) owns(chainName string, r step.Resource) bool {
	switch r.Kind {
	case host.KindDir, host.KindMount, host.KindNetns:
		return below(n.dir(chainName), r.Path)
	case host.KindCgroup:
		root := n.Cgroup(chainName).Path
		return r.Path == root || below(root, r.Path)
	}
	for _, d := range n.Transports {
		if c, ok := d.(transport.Cleaner); ok && c.Removers()[r.Kind] != nil {
			return below(n.dir(chainName), r.Path)
		}
	}
	return true
}

func below(dir, path string) bool {
	return filepath.Clean(path) == path && strings.HasPrefix(path, dir+"/")
}

// SPDX-License-Identifier: Apache-2.0

// Package node owns what Drayage makes on one host: it brings chains up and
// down, supervises their functions, and cleans up after whoever died.
//
// Everything of a chain is in <state>/<chain>/ and in the cgroup /dray/<chain>.
// What a chain makes is journaled first; only a committed chain outlives the
// process that made it.
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

// DefaultStateDir is where chains live unless DRAY_STATE says otherwise.
const DefaultStateDir = "/run/dray"

// Node is one host's chains.
type Node struct {
	StateDir   string
	Transports []transport.Driver
	Runtimes   []runtime.Runtime
	// Progress is told of each step; it may be nil.
	Progress func(text string)
	// Fault injects failures in tests; nil in production.
	Fault func(step.Step, step.Phase) error
}

// StateDir is the state directory that the environment asks for, as one path
// whatever the way that leads there: it becomes part of the cgroups' names.
func StateDir() (string, error) {
	dir := os.Getenv("DRAY_STATE")
	if dir == "" {
		return DefaultStateDir, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("DRAY_STATE: %w", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	return abs, nil // it is still to be made
}

func (n *Node) dir(chainName string) string { return filepath.Join(n.StateDir, chainName) }

// cgroupOf is the root of a chain's cgroup tree. Chains of another state
// directory than the default get a tree of their own.
func (n *Node) cgroupOf(chainName string) host.Cgroup {
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

// spec is a function as its runtime is to run it.
func (n *Node) spec(c *chain.Chain, p *plan.Plan, f chain.Function) runtime.Spec {
	s := runtime.Spec{
		Chain:    c.Name,
		Function: f,
		Dir:      filepath.Join(n.dir(c.Name), "fn", f.Name),
		State:    n.StateDir,
		Cgroup:   n.cgroupOf(c.Name).Child("fn-" + f.Name),
	}
	if placed := p.Function(f.Name); placed != nil {
		s.CPUs = placed.CPUs
	}
	return s
}

// spec is a function of a chain whose links are there, as its runtime is to run it.
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

// enginesTimeout bounds the part of it in which engines are asked.
const enginesTimeout = time.Minute

// removeAll removes a chain's resources: the supervisor first, which would
// start things anew; then what engines hold, since a client that is killed
// while it creates leaves its daemon at work; then every process, so that
// nothing is used while it goes; and the rest in reverse order of making. If
// an engine hangs, all else goes, and its own is for the next attempt.
func (n *Node) removeAll(ctx context.Context, chainName string, made []step.Resource) error {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	r := n.runner(nil)
	root := n.cgroupOf(chainName)
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

// owns reports whether a resource that a journal names can be the chain's:
// files below its directory, also those that a transport removes in its own way,
// and cgroups below its own. A network interface, whose name may be anything, is
// known by its MAC address when it is removed.
func (n *Node) owns(chainName string, r step.Resource) bool {
	switch r.Kind {
	case host.KindDir, host.KindMount, host.KindNetns:
		return below(n.dir(chainName), r.Path)
	case host.KindCgroup:
		root := n.cgroupOf(chainName).Path
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

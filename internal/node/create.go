// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// Live is a chain on this host: its sandboxes exist and its links are plumbed.
type Live struct {
	Chain *chain.Chain
	State State

	node    *Node
	dir     string
	lock    *os.File // nil if the chain is not locked
	journal *journal // nil once committed
	kept    bool     // logs are in dirFailed
	// This process's background work on the links' processes and the broker, which
	// both outlive it.
	links, broker background
}

// ExistsError says that a chain of that name is up, or in use.
type ExistsError struct {
	Chain string
	Text  string
}

func (e *ExistsError) Error() string { return fmt.Sprintf("chain %s %s", e.Chain, e.Text) }

// Create makes a planned chain's sandboxes and links. It starts nothing. Until
// Commit, the chain ends with this process: however it ends, `dray gc` removes the
// rest. source is the chain file's text. On error, Create has removed everything
// again but the logs.
func (n *Node) Create(ctx context.Context, command string, c *chain.Chain, source []byte, p *plan.Plan) (*Live, error) {
	if err := p.Simulable(); err != nil {
		return nil, err
	}
	l, err := n.claim(ctx, command, c, p)
	if err != nil {
		return nil, err
	}
	if err := l.create(ctx, source, p); err != nil {
		return nil, l.Fail(ctx, err)
	}
	return l, nil
}

// claim makes the chain's directory, lock, journal and first state, after it has
// removed an earlier namesake's leftovers.
func (n *Node) claim(ctx context.Context, command string, c *chain.Chain, p *plan.Plan) (*Live, error) {
	self, err := host.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	boot, err := host.BootID()
	if err != nil {
		return nil, err
	}
	l := &Live{Chain: c, node: n, dir: n.dir(c.Name)}
	l.State = State{
		Created: time.Now(), Boot: boot, Plan: p,
		Sandboxes: map[string]*runtime.Sandbox{},
		Reports:   map[string]*transport.Report{},
	}
	err = n.withRootLock(ctx, func() error {
		if err := n.clearLeftover(ctx, c.Name); err != nil {
			return err
		}
		if err := n.forget(c.Name); err != nil {
			return err
		}
		if err := host.CheckSpace(n.StateDir, chainSpace(c)); err != nil {
			return err
		}
		if err := n.checkClaimed(c.Name, p.ClaimedCPUs(), p.Links); err != nil {
			return err
		}
		if err := host.MakeDir(l.dir, dirMode); err != nil {
			return err
		}
		if err := touch(n.lockFile(c.Name)); err != nil {
			return err
		}
		if l.lock, err = waitLock(ctx, n.lockFile(c.Name), exclusive, lockPatience); err != nil {
			return err
		}
		if l.journal, err = createJournal(n.journalFile(c.Name), owner{Process: self, Command: command, Since: time.Now()}); err != nil {
			return err
		}
		// From here on the chain owns its CPUs.
		return writeJSON(filepath.Join(l.dir, fileState), l.State)
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// chainSpace is what a chain's directory takes at first, in bytes: its state, and the
// beginning of its logs.
func chainSpace(c *chain.Chain) uint64 {
	return 1<<20 + uint64(len(c.Functions)+len(c.Links))<<14
}

// clearLeftover removes a chain's leftovers, unless it is up or in use.
func (n *Node) clearLeftover(ctx context.Context, name string) error {
	l, found, err := n.hold(ctx, name)
	var absent *AbsentError
	if errors.As(err, &absent) {
		return nil
	}
	if err != nil {
		return err
	}
	if l != nil {
		defer l.Close()
	}
	switch found.Condition {
	case Up:
		return &ExistsError{name, "is already up; run `dray down " + name + "` first"}
	case Broken, Foreign:
		return notUp(found)
	}
	kept, err := n.remove(ctx, found)
	n.tell(name, kept)
	return err
}

func (l *Live) create(ctx context.Context, source []byte, p *plan.Plan) error {
	n, c := l.node, l.Chain
	cgroup := n.Cgroup(c.Name)
	runner := n.runner(l.journal)
	runner.Failed = l.keepLogs
	if err := runner.Run(ctx, []step.Step{{
		Name:  "chain " + c.Name + ": control group",
		Makes: []step.Resource{host.CgroupResource(cgroup)},
		Do:    func(context.Context) error { return cgroup.Create(host.Limits{}) },
	}}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.dir, fileChain), source, 0o600); err != nil {
		return err
	}
	for _, f := range c.Functions {
		if err := l.createSandbox(ctx, runner, f); err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	if needsBroker(p) {
		if err := l.createBroker(ctx, runner); err != nil {
			return err
		}
	}
	if err := l.createHosts(ctx, runner, p); err != nil {
		return err
	}
	for _, pl := range p.Links {
		if err := l.createLink(ctx, runner, pl); err != nil {
			return fmt.Errorf("link %s: %w", pl.Name, err)
		}
	}
	for _, f := range c.Functions {
		if err := l.tellExternal(f); err != nil {
			return err
		}
	}
	if err := l.bootFunctions(ctx); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(l.dir, fileState), l.State); err != nil {
		return err
	}
	l.links.begin(l.reviveLinks)
	return nil
}

// bootFunctions boots the functions whose runtime needs that; their ports now exist.
func (l *Live) bootFunctions(ctx context.Context) error {
	for _, f := range l.Chain.Functions {
		if err := l.boot(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (l *Live) boot(ctx context.Context, f chain.Function) error {
	rt, err := l.node.runtime(f.Runtime)
	if err != nil {
		return err
	}
	if booter, ok := rt.(runtime.Booter); ok {
		if err := booter.Boot(ctx, l.spec(f)); err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	return nil
}

func (l *Live) createSandbox(ctx context.Context, runner *step.Runner, f chain.Function) error {
	rt, err := l.node.runtime(f.Runtime)
	if err != nil {
		return err
	}
	spec := l.node.spec(l.Chain, l.State.Plan, f)
	if err := host.MakeDirs(spec.Dir, dirMode); err != nil {
		return err
	}
	build, err := rt.Sandbox(spec)
	if err != nil {
		return err
	}
	if err := runner.Run(ctx, build.Steps); err != nil {
		return err
	}
	l.State.Sandboxes[f.Name] = build.Sandbox
	return nil
}

func (l *Live) createLink(ctx context.Context, runner *step.Runner, pl plan.Link) error {
	build, err := l.buildLink(pl, 0, false)
	if err != nil {
		return err
	}
	if err := runner.Run(ctx, build.Steps); err != nil {
		return err
	}
	l.State.Reports[pl.Name] = build.Report
	return nil
}

// buildLink is the work of making a link as planned, at that move number; moves
// says that the link exists, over another transport.
func (l *Live) buildLink(pl plan.Link, number int, moves bool) (*transport.Build, error) {
	driver, err := l.node.driver(pl.Transport)
	if err != nil {
		return nil, err
	}
	spec, err := l.linkSpec(pl, number)
	if err != nil {
		return nil, err
	}
	spec.Move = moves
	build, err := driver.Build(spec)
	if err != nil {
		return nil, err
	}
	first := step.Step{
		Name:  "link " + pl.Name + ": directory and control group",
		Makes: []step.Resource{host.DirResource(spec.Dir), host.CgroupResource(spec.Cgroup)},
		Do: func(context.Context) error {
			if err := host.MakeDirs(spec.Dir, dirMode); err != nil {
				return err
			}
			return spec.Cgroup.Create(host.Limits{})
		},
	}
	build.Steps = append([]step.Step{first}, build.Steps...)
	return build, nil
}

func (l *Live) linkSpec(pl plan.Link, number int) (transport.Spec, error) {
	own := pl.Name
	if number > 0 {
		own += fmt.Sprintf(".%d", number) // next to the old one
	}
	spec := transport.Spec{
		Chain:      l.Chain.Name,
		Link:       pl.Name,
		Dir:        filepath.Join(l.dir, "link", own),
		Cgroup:     l.node.Cgroup(l.Chain.Name).Child("link-" + own),
		CPUs:       pl.CPUs,
		Node:       l.commonNode(pl),
		Broker:     l.BrokerDir(),
		MTU:        pl.MTU,
		Shape:      pl.Shape,
		Messages:   pl.Messages,
		Forwarding: pl.Forwarding,
	}
	for _, e := range pl.Ends {
		if e.Uplink != "" {
			spec.Ends = append(spec.Ends, transport.End{Netns: host.HostNetns, Name: e.Uplink, Uplink: true})
			continue
		}
		sandbox := l.State.Sandboxes[e.Function]
		if sandbox == nil {
			return spec, fmt.Errorf("function %s has no sandbox", e.Function)
		}
		end := transport.End{
			Function: e.Function, Netns: sandbox.Netns, Name: e.Port,
			MAC: e.MAC.HardwareAddr(), IP: e.IP, Queues: e.Queues, Face: e.Face, Shape: e.Shape,
		}
		if f := l.Chain.Function(e.Function); f != nil {
			end.Runtime, end.HugePages = f.Runtime, len(f.HostPages()) > 0
		}
		if end.Brokered() {
			end.Socket, end.User, end.Hold = filepath.Join(sandbox.Ports, e.Port), sandbox.PortsUser, e.Hold
		}
		if end.Dpdk() {
			end.Dir, end.StartsAfter = filepath.Join(sandbox.Links, e.Port), l.startsAfter(e.Function)
		}
		if end.Machine() {
			end.Dir, end.User = filepath.Join(sandbox.Links, e.Port), sandbox.PortsUser
		}
		spec.Ends = append(spec.Ends, end)
	}
	return spec, l.putOnHosts(&spec, pl, number)
}

// commonNode is the NUMA node that has the CPUs of all functions of a link; nil: none
// has, or a function has no CPUs of its own.
func (l *Live) commonNode(pl plan.Link) *int {
	var cpus []int
	for _, e := range pl.Ends {
		f := l.State.Plan.Function(e.Function)
		if f == nil || len(f.CPUs) == 0 {
			return nil
		}
		cpus = append(cpus, f.CPUs...)
	}
	return host.CommonMemoryNode(cpus)
}

// leave leaves the links' processes and the broker to another process, or to removal.
func (l *Live) leave() {
	l.links.end()
	l.broker.end()
}

// Commit makes the chain outlive this process.
func (l *Live) Commit() error {
	if err := l.journal.commit(); err != nil {
		return err
	}
	return l.Release()
}

// Release lets other commands work on the chain.
func (l *Live) Release() error {
	l.leave()
	var errs []error
	if l.journal != nil {
		errs = append(errs, l.journal.close())
		l.journal = nil
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
		l.lock = nil
	}
	return errors.Join(errs...)
}

// Remove removes everything that the chain made, and last the chain's directory.
// The caller holds the chain's lock.
func (l *Live) Remove(ctx context.Context) error {
	l.leave()
	kept, err := l.node.remove(ctx, Found{Chain: l.Chain.Name, Condition: Leftover})
	l.node.tell(l.Chain.Name, kept)
	return errors.Join(err, l.Release())
}

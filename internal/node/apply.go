// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// Apply changes a running chain to match a changed file: source is the file's text,
// p its plan, and changes their Difference, none refused. The caller holds the
// chain's lock. Everything outside the changes keeps running, traffic included.
// After an error, applying the same file again continues.
func (l *Live) Apply(ctx context.Context, c *chain.Chain, source []byte, p *plan.Plan, changes []Change, settle time.Duration) error {
	status, _ := l.published() // without one, there is no supervisor
	if err := errors.Join(l.checkSupervised(status), status.canStartAgain(l.Chain.Name, changes), status.canRead(c)); err != nil {
		return err
	}
	if err := l.claim(ctx, p.ClaimedCPUs(), p.Links); err != nil {
		return err
	}
	j, err := openJournal(l.node.journalFile(l.Chain.Name))
	if err != nil {
		return err
	}
	a := &application{Live: l, to: c, plan: p, runner: l.node.runner(j), changes: changes}
	a.runner.Failed = l.keepLogs
	err = l.pointToLogs(a.run(ctx, source))
	if err := errors.Join(err, j.close()); err != nil {
		return err
	}
	return l.reload(ctx, settle)
}

// claim reserves CPUs, and the addresses of links, for a change of the chain, until the
// state that it leads to is saved.
func (l *Live) claim(ctx context.Context, cpus []int, links []plan.Link) error {
	return l.node.withRootLock(ctx, func() error {
		if err := l.node.checkClaimed(l.Chain.Name, cpus, links); err != nil {
			return err
		}
		l.State.Claimed, l.State.Coming = cpus, plan.OnUplinks(links)
		return l.save()
	})
}

// checkSupervised returns an error unless the status is that of a live supervisor that
// understands this version.
func (l *Live) checkSupervised(s Status) error {
	if s.Supervisor.PID == 0 || !s.Supervisor.Alive() {
		return fmt.Errorf("the supervisor of chain %s is dead, which would start its functions; run `dray down %[1]s` and `dray up` again", l.Chain.Name)
	}
	if s.Protocol < leastProtocol || s.Protocol > supervisorProtocol {
		return fmt.Errorf("the supervisor of chain %s is from another version of dray, and a change would end it; run `dray down %[1]s` and `dray up` again", l.Chain.Name)
	}
	return nil
}

// canStartAgain returns an error if a change needs a function started again that has failed,
// and the supervisor is too old for that: an upgrade leaves it running.
func (s Status) canStartAgain(name string, changes []Change) error {
	again := func(c Change) bool {
		return c.What == kindFunction && c.Why != "" && (c.Action == Restart || c.Action == Add)
	}
	i := slices.IndexFunc(changes, again)
	if s.Protocol >= protocolAgain || i < 0 {
		return nil
	}
	return fmt.Errorf("%s, and the supervisor of chain %s is from an older version of dray, which does not start it again; run `dray down %[2]s` and `dray up`", changes[i].Why, name)
}

// canRead returns an error if the supervisor is too old to read the changed file.
func (s Status) canRead(c *chain.Chain) error {
	i := slices.IndexFunc(c.Paths, func(p chain.Path) bool { return p.Requires.MTU > 0 })
	if s.Protocol >= protocolAgain || i < 0 {
		return nil
	}
	return fmt.Errorf("path %s requires an mtu, and the supervisor of chain %s is from an older version of dray, which does not know that; run `dray down %[2]s` and `dray up`", c.Paths[i].Name, c.Name)
}

// application is a chain change in progress.
type application struct {
	*Live
	to      *chain.Chain
	plan    *plan.Plan
	runner  *step.Runner
	changes []Change
	before  *State // the state that is saved while add makes new parts
}

// names are the things of a kind that have one of these actions.
func (a *application) names(what string, actions ...Action) []string {
	var names []string
	for _, c := range a.changes {
		if c.What == what && slices.Contains(actions, c.Action) {
			names = append(names, c.Name)
		}
	}
	return names
}

func (a *application) run(ctx context.Context, source []byte) error {
	if err := a.clearLinks(ctx); err != nil {
		return err
	}
	removed := a.names(kindFunction, Remove)
	if len(removed) > 0 {
		a.State.Held = removed
		if err := a.adopt(ctx); err != nil {
			return fmt.Errorf("stop the functions that are removed: %w", err)
		}
	}
	for _, name := range a.names(kindLink, Remove, Replace) {
		if err := a.removeLink(ctx, name); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	for _, name := range removed {
		if err := a.removeFunction(ctx, *a.Chain.Function(name)); err != nil {
			return fmt.Errorf("function %s: %w", name, err)
		}
	}
	for _, name := range a.names(kindLink, Move) {
		if err := a.move(ctx, *a.plan.Link(name)); err != nil {
			return err
		}
	}
	if err := a.add(ctx); err != nil {
		return err
	}
	a.State.Held, a.State.Claimed, a.State.Coming, a.State.Left = nil, nil, nil, nil
	a.State.Unsettled = a.unsettled()
	if err := host.ReplaceFile(filepath.Join(a.dir, fileChain), source, 0o600); err != nil {
		return err
	}
	return a.save()
}

// unsettled are the functions that this change and unfinished earlier ones start.
func (a *application) unsettled() []string {
	all := append(a.names(kindFunction, Add, Restart), a.State.Unsettled...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return a.to.Function(name) == nil })
}

// clearLinks removes what an unfinished change left of links.
func (a *application) clearLinks(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(a.State.Left)) {
		if err := a.runner.Remove(context.WithoutCancel(ctx), a.State.Left[name]); err != nil {
			return fmt.Errorf("what an unfinished change left of link %s: %w", name, err)
		}
	}
	a.State.Left = nil
	return a.save()
}

// add makes the new functions and links, and adopts the new plan.
func (a *application) add(ctx context.Context) error {
	from, was := a.Chain, a.State
	a.before = &was
	added := a.names(kindFunction, Add)
	a.Chain, a.State.Plan = a.to, a.merged(was.Plan)
	a.State.Sandboxes, a.State.Reports = maps.Clone(was.Sandboxes), maps.Clone(was.Reports)
	err := a.make(ctx, added)
	if err != nil {
		a.Chain, a.State = from, was
	}
	return err
}

func (a *application) make(ctx context.Context, added []string) error {
	for _, name := range added {
		f := *a.to.Function(name)
		if err := a.clearFunction(ctx, f); err != nil {
			return fmt.Errorf("function %s: %w", name, err)
		}
		if err := a.createSandbox(ctx, a.runner, f); err != nil {
			return fmt.Errorf("function %s: %w", name, err)
		}
	}
	for _, name := range a.names(kindLink, Add, Replace) {
		if err := a.makeLink(ctx, *a.plan.Link(name)); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	for _, name := range added {
		f := *a.to.Function(name)
		if err := a.tellExternal(f); err != nil {
			return err
		}
		if err := a.boot(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// merged is the new plan, with the state of the functions and links that stay.
func (a *application) merged(up *plan.Plan) *plan.Plan {
	p := *a.plan
	p.Functions, p.Links = slices.Clone(p.Functions), slices.Clone(p.Links)
	added := a.names(kindFunction, Add)
	for i := range p.Functions {
		if was := up.Function(p.Functions[i].Name); was != nil && !slices.Contains(added, was.Name) {
			p.Functions[i] = *was
		}
	}
	made := a.names(kindLink, Add, Replace)
	for i := range p.Links {
		if was := up.Link(p.Links[i].Name); was != nil && !slices.Contains(made, was.Name) {
			p.Links[i].CPUs = was.CPUs
		}
	}
	return &p
}

// removeLink removes a running link. It updates the state first, so that nothing
// restarts the link's processes, and a failed removal can be tried again.
func (a *application) removeLink(ctx context.Context, name string) error {
	pl := a.State.Plan.Link(name)
	if pl == nil {
		return nil // an earlier attempt removed it
	}
	build, err := a.buildLink(*pl, a.State.Moves[name].At, false)
	if err != nil {
		return err
	}
	kept := *a.State.Plan
	kept.Links = slices.DeleteFunc(slices.Clone(kept.Links), func(l plan.Link) bool { return l.Name == name })
	a.State.Plan = &kept
	delete(a.State.Reports, name)
	a.State.leave(name, resources(build.Steps))
	if err := a.save(); err != nil {
		return err
	}
	if err := a.runner.Remove(context.WithoutCancel(ctx), a.State.Left[name]); err != nil {
		return err
	}
	delete(a.State.Left, name)
	return nil
}

// makeLink makes a link under a new number, whatever an earlier namesake left. Until
// the change finishes, the saved state has no such link, only what may be left of it.
func (a *application) makeLink(ctx context.Context, pl plan.Link) error {
	moves := a.State.Moves[pl.Name]
	moves.Tried++
	build, err := a.buildLink(pl, moves.Tried, false)
	if err != nil {
		return err
	}
	if a.State.Moves == nil {
		a.State.Moves = map[string]Moves{}
	}
	a.State.Moves[pl.Name] = moves
	a.before.Moves = a.State.Moves
	a.before.leave(pl.Name, resources(build.Steps))
	if err := writeJSON(filepath.Join(a.dir, fileState), a.before); err != nil {
		return err
	}
	if err := a.runner.Run(ctx, build.Steps); err != nil {
		return err
	}
	moves.At = moves.Tried
	a.State.Moves[pl.Name] = moves
	a.State.Reports[pl.Name] = build.Report
	return nil
}

// removeFunction removes a stopped function's sandbox.
func (a *application) removeFunction(ctx context.Context, f chain.Function) error {
	if err := a.clearFunction(ctx, f); err != nil {
		return err
	}
	delete(a.State.Sandboxes, f.Name)
	kept := *a.State.Plan
	kept.Functions = slices.DeleteFunc(slices.Clone(kept.Functions), func(p plan.Function) bool { return p.Name == f.Name })
	a.State.Plan = &kept
	return a.save()
}

// clearFunction removes any part of a function's sandbox: an engine's resources
// first, then its processes, then the rest.
func (a *application) clearFunction(ctx context.Context, f chain.Function) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	rt, err := a.node.runtime(f.Runtime)
	if err != nil {
		return err
	}
	spec := a.node.spec(a.Chain, a.State.Plan, f)
	build, err := rt.Sandbox(spec)
	if err != nil {
		return err
	}
	engines, rest := a.node.splitEngines(append([]step.Resource{host.DirResource(spec.Dir)}, resources(build.Steps)...))
	if err := a.runner.Remove(ctx, engines); err != nil {
		return err
	}
	return a.runner.Remove(ctx, rest)
}

func resources(steps []step.Step) []step.Resource {
	var all []step.Resource
	for _, s := range steps {
		all = append(all, s.Makes...)
	}
	return all
}

func (l *Live) save() error { return writeJSON(filepath.Join(l.dir, fileState), l.State) }

// reload makes the supervisor adopt the state, and waits until the commands that the
// change started have settled.
func (l *Live) reload(ctx context.Context, settle time.Duration) error {
	if err := l.adopt(ctx); err != nil {
		return err
	}
	for {
		status, err := l.published()
		if err != nil {
			return err
		}
		maps.DeleteFunc(status.Functions, func(name string, _ FunctionStatus) bool { return !slices.Contains(l.State.Unsettled, name) })
		wait, err := settling(status.Functions, settle)
		if wait <= 0 {
			l.State.Unsettled = slices.DeleteFunc(l.State.Unsettled, func(name string) bool {
				_, failed := settling(map[string]FunctionStatus{name: status.Functions[name]}, settle)
				return failed == nil
			})
			return errors.Join(err, l.save())
		}
		if err := errors.Join(l.checkSupervised(status), l.checkSpace()); err != nil {
			return err
		}
		if err := host.Sleep(ctx, lockPoll); err != nil {
			return err
		}
	}
}

// adopt makes the supervisor adopt the state, and waits until it has.
func (l *Live) adopt(ctx context.Context) error {
	status, err := l.published()
	if err != nil {
		return err
	}
	supervisor, before := status.Supervisor, status.Reloads
	l.State.Revision++
	if err := l.save(); err != nil {
		return err
	}
	if !supervisor.Signal(ReloadSignal) {
		return l.checkSupervised(status)
	}
	for {
		status, err := l.published()
		if err != nil {
			return err
		}
		switch {
		case status.Revision == l.State.Revision:
			return nil
		case status.Reloads != before && status.ReloadError != "":
			return fmt.Errorf("the supervisor of chain %s cannot read the changed chain: %s", l.Chain.Name, status.ReloadError)
		}
		if err := errors.Join(l.checkSupervised(status), l.checkSpace()); err != nil {
			return err
		}
		if err := host.Sleep(ctx, lockPoll); err != nil {
			return err
		}
	}
}

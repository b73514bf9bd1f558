// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/parse"
)

// PathGroup are paths that one copy of a chain measures: draygen is at their ends, and the functions between run
// their own programs, in copies of their pods. No function is both.
type PathGroup struct {
	links []plan.Link               // the paths, as plan.OfPaths has them
	specs map[string]map[string]any // of pods, by function
}

// Names are the paths in words.
func (g *PathGroup) Names() string {
	var names []string
	for _, l := range g.links {
		names = append(names, l.Name)
	}
	return parse.All(names)
}

// Copies are those of pods that run their own programs, in words; "": there are none.
func (g *PathGroup) Copies() string {
	if len(g.specs) == 0 {
		return ""
	}
	return "copies of " + parse.All(slices.Sorted(maps.Keys(g.specs)))
}

// Unmeasured are the verdicts on paths that could not be measured.
func (g *PathGroup) Unmeasured(because error) (all []verdict.Verdict) {
	for _, l := range g.links {
		all = append(all, undecided(l, because.Error(), "another run")...)
	}
	return all
}

// runs reports whether a function runs its own program. A nil group has none.
func (g *PathGroup) runs(function string) bool { return g != nil && g.specs[function] != nil }

// endsAt reports whether a path of the group ends at a port, "function.port".
func (g *PathGroup) endsAt(port string) bool {
	return g != nil && slices.ContainsFunc(g.links, func(l plan.Link) bool { return l.Ends[0].String() == port || l.Ends[1].String() == port })
}

// takes reports whether a copy can measure a path as well.
func (g *PathGroup) takes(l plan.Link) bool {
	for _, other := range append(slices.Clone(g.links), l) {
		for _, e := range other.Ends {
			if g.runs(e.Function) || slices.Contains(l.Course.Through, e.Function) {
				return false
			}
		}
	}
	return true
}

// Paths divides the paths of a chain into groups. Only with permission are pods of functions copied. The verdicts
// are on the paths that cannot be measured, with the reason.
func (k *Kubectl) Paths(ctx context.Context, c *Chain, permitted bool) (groups []*PathGroup, left []verdict.Verdict, err error) {
	p, _, err := k.planOf(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range p.OfPaths().Links {
		if why, needs := unsuited(p, l); why != "" {
			left = append(left, undecided(l, why, needs)...)
			continue
		}
		if !permitted {
			left = append(left, undecided(l, "that takes copies of its functions' own pods, whose programs may have effects elsewhere", "--paths")...)
			continue
		}
		specs, err := k.specsOf(ctx, c, l)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			left = append(left, undecided(l, err.Error(), "a pod that can be copied, or `dray run` on one host")...)
			continue
		}
		i := slices.IndexFunc(groups, func(g *PathGroup) bool { return g.takes(l) })
		if i < 0 {
			i, groups = len(groups), append(groups, &PathGroup{specs: map[string]map[string]any{}})
		}
		groups[i].links = append(groups[i].links, l)
		maps.Copy(groups[i].specs, specs)
	}
	return groups, left, nil
}

// unsuited is why draygen cannot take the place of a function at the end of a path, and what it needs; "": it can.
func unsuited(p *plan.Plan, path plan.Link) (why, needs string) {
	for _, e := range path.Ends {
		for _, l := range p.Links {
			if fleet.HasOwnDevices(l.Transport) && slices.ContainsFunc(l.Ends, func(o plan.End) bool { return o.String() == e.String() }) {
				return fmt.Sprintf("its end %s is a device of %s, which one program after the other cannot open while the next function runs", e, l.Transport), "another transport there"
			}
		}
	}
	return "", ""
}

// specsOf are the specs of copies of the pods between the ends of a path, by function.
func (k *Kubectl) specsOf(ctx context.Context, c *Chain, path plan.Link) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for _, function := range path.Course.Through {
		name := standInName(c.Metadata.Name)
		spec, err := k.podSpec(ctx, c.Metadata.Namespace, c.anEnd(function).Pod, manifest.Template(c.Metadata.Name, function), manifest.Template(name, function))
		if err != nil {
			return nil, err
		}
		all[function] = spec
	}
	return all, nil
}

// undecided are the verdicts on a path that was not measured.
func undecided(l plan.Link, why, needs string) []verdict.Verdict {
	all := verdict.Judge(verdict.FromPlan(l), nil)
	for i := range all {
		all[i].Verdict, all[i].Reason, all[i].Needs = verdict.NotMeasurable, why, needs
	}
	return all
}

// Expect is about how long MeasurePaths takes.
func (g *PathGroup) Expect(o verify.Options) time.Duration {
	o.Far = true
	return verify.Estimate(&plan.Plan{Links: g.links}, o)
}

// MeasurePaths measures the paths of a group on the running copy s, as is its state. It returns the verdicts on
// them, and says in which direction nothing arrives.
func (k *Kubectl) MeasurePaths(ctx context.Context, s *StandIn, as *Chain, g *PathGroup, a Active, say func(string)) ([]verdict.Verdict, error) {
	p, nodes, err := k.planOf(ctx, as)
	if err != nil {
		return nil, err
	}
	p.Paths = slices.DeleteFunc(p.Paths, func(path plan.Path) bool {
		return !slices.ContainsFunc(g.links, func(l plan.Link) bool { return l.Name == path.Name })
	})
	placed(p, s, as)
	paths := p.OfPaths()
	ends, err := (&programs{k, s, map[string]instrument.FarProgram{}}).pathEnds(ctx, paths, as)
	if err != nil {
		return nil, err
	}
	a.Options.Far = true
	kept := &keeper{sink: a.Run.sink()}
	err = verify.Paths(ctx, verify.Input{
		Plan: p, Options: a.Options, Run: a.Run.id(s), Progress: a.Progress, Prolong: a.Prolong, Sink: kept,
		Env:   func() record.Environment { return environment("", p, nodes) },
		EnvOf: func(e plan.End) record.Environment { return environment(as.nodeOf(e.Function), p, nodes) },
		Far:   ends,
	}, say)
	if err != nil {
		return nil, err
	}
	a.Run.copied(as, g)
	var verdicts []verdict.Verdict
	for _, l := range paths.Links {
		judged := verdict.Judge(verdict.FromPlan(l), kept.trials)
		if as.nodeOf(l.Ends[0].Function) != as.nodeOf(l.Ends[1].Function) {
			a.Run.Leave(unclocked(judged))
		}
		verdicts = append(verdicts, judged...)
	}
	return verdicts, nil
}

// unclocked says why a delay between ends on two nodes is left undecided, and returns such verdicts. On links the
// nodes compare their clocks; no probe of theirs passes a function.
func unclocked(all []verdict.Verdict) (some []verdict.Verdict) {
	for i := range all {
		if v := &all[i]; verdict.IsDelay(v.Requirement) && v.Verdict == verdict.NotMeasurable {
			v.Reason, v.Needs = "its ends are on two nodes, and nothing compares their clocks over a path", "the pods of both ends on one node"
			some = append(some, *v)
		}
	}
	return some
}

// keeper keeps records, and passes them on.
type keeper struct {
	sink   runner.Sink // nil: nothing else keeps them
	trials []record.Trial
}

func (k *keeper) Write(t record.Trial) error {
	k.trials = append(k.trials, t)
	if k.sink == nil {
		return nil
	}
	return k.sink.Write(t)
}

// MeasuredPaths are the paths of the chain with the verdicts on them.
func (c *Chain) MeasuredPaths(verdicts []verdict.Verdict) (all []Path) {
	for _, p := range c.Status.Paths {
		if own := verdictsOn(p.Name, verdicts); len(own) > 0 {
			p.Requirements = nil
			for _, v := range own {
				p.Requirements = append(p.Requirements, conditionOf(v))
			}
		}
		all = append(all, p)
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
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
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/release"
)

// Active is a measurement of the links of a copy of a chain by traffic of its own (an active method,
// RFC 7799): the same trials, in the same order and judged by the same rules as `dray verify` does on
// one host.
type Active struct {
	Options  verify.Options
	Progress func(runner.Progress) // before each trial
	Prolong  func(text string)     // before the run is prolonged
	Run      *Run                  // keeps the records; nil: nothing does
}

// Expect is about how long Measure takes on a copy of the chain c. It is an error if c has no link with
// pods.
func (k *Kubectl) Expect(ctx context.Context, c *Chain, o verify.Options) (time.Duration, error) {
	p, _, err := k.planOf(ctx, c)
	if err != nil {
		return 0, err
	}
	o.Far = true
	return verify.Estimate(p, o), nil
}

// Measure measures the links of the running copy s, as is its state. It returns the verdicts on
// them, in the order of the plan.
func (k *Kubectl) Measure(ctx context.Context, s *StandIn, as *Chain, a Active) ([]verdict.Verdict, error) {
	p, nodes, err := k.planOf(ctx, as)
	if err != nil {
		return nil, err
	}
	ends, err := (&programs{k, s, map[string]instrument.FarProgram{}}).endpoints(ctx, p, as)
	if err != nil {
		return nil, err
	}
	placed(p, s, as)
	sink, err := a.Run.begin(p, as, k.where(ctx, s, as, nodes))
	if err != nil {
		return nil, err
	}
	trials, err := verify.Links(ctx, verify.Input{
		Plan: p, Options: a.Options, Run: a.Run.id(s), Progress: a.Progress, Prolong: a.Prolong, Sink: sink,
		Env:   func() record.Environment { return environment("", p, nodes) },
		EnvOf: func(e plan.End) record.Environment { return environment(as.nodeOf(e.Function), p, nodes) },
		Far:   func(e plan.End) (instrument.Endpoint, error) { return ends[e.String()], nil },
	})
	if err != nil {
		return nil, err
	}
	var verdicts []verdict.Verdict
	for _, l := range p.Links {
		verdicts = append(verdicts, verdict.Judge(verdict.FromPlan(l), trials)...)
	}
	return verdicts, nil
}

// planOf is the plan of a chain, with the links that have pods, and the nodes.
func (k *Kubectl) planOf(ctx context.Context, c *Chain) (*plan.Plan, []fleet.Node, error) {
	nodes, err := k.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	own, err := manifest.Parse(c.Metadata.Name, c.Spec)
	if err != nil {
		return nil, nil, err
	}
	choice := fleet.Choose(fleet.Plan(own, nodes))
	if choice.Plan == nil {
		return nil, nil, fmt.Errorf("chain %s: %s", c.Name(), choice)
	}
	p := *choice.Plan
	if p.Links = running(c, choice.Plan.Links); len(p.Links) == 0 {
		return nil, nil, fmt.Errorf("chain %s has no link with a pod at each end", c.Name())
	}
	p.Paths = slices.DeleteFunc(slices.Clone(p.Paths), func(path plan.Path) bool {
		return slices.ContainsFunc(path.Steps, func(s chain.Step) bool { return p.Link(s.Link) == nil })
	})
	p.Functions = slices.Clone(p.Functions)
	for i := range p.Functions {
		p.Functions[i].CPUs = cpusOf(c, p.Functions[i].Name, nodes)
	}
	return &p, nodes, nil
}

// running are the links whose ends have pods, as they are made now.
func running(c *Chain, all []plan.Link) (some []plan.Link) {
	for _, l := range all {
		if now := c.Link(l.Name); now.Runs() {
			l.Transport = now.Transport
			some = append(some, l)
		}
	}
	return some
}

// cpusOf are the CPUs of the node of a function's pod; nil: not known.
func cpusOf(c *Chain, function string, nodes []fleet.Node) []int {
	for _, l := range c.Status.Links {
		for _, e := range l.Ends {
			for _, n := range nodes {
				if e.Function == function && e.Node == n.Name && n.Inventory != nil {
					return n.Inventory.Host.CPUs
				}
			}
		}
	}
	return nil
}

// environment describes a node, and the links as they are planned. How busy the node is, is not known.
func environment(node string, p *plan.Plan, nodes []fleet.Node) record.Environment {
	env := record.Environment{}
	for _, n := range nodes {
		if n.Name == node && n.Inventory != nil {
			env = runner.OfHost(n.Inventory.Host)
			// It is the system of dray-node's image, and the load when dray-node looked.
			env.OS, env.LoadBefore = "", 0
		}
	}
	env.Dray, env.Qdiscs = release.Version(), map[string]string{}
	for _, l := range p.Links {
		queues := runner.UserQdiscs(l)
		maps.Copy(env.Qdiscs, queues)
		for _, e := range l.Ends {
			if queues[e.String()] != "" {
				continue
			}
			if q := cmp.Or(e.Shape, l.Shape); q != nil { // without it, the nodes let no pod start
				env.Qdiscs[e.String()] = fmt.Sprintf("%s rate %s burst %s latency %s", q.Kind, q.Rate, q.Burst, q.Latency)
			}
		}
	}
	return env
}

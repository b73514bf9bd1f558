// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os/exec"
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
}

// Expect is about how long Measure takes on a copy of the chain c. It is an error if c has no link that
// Measure can measure.
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
	far, err := k.far(ctx, s, as)
	if err != nil {
		return nil, err
	}
	trials, err := verify.Links(ctx, verify.Input{
		Plan: p, Options: a.Options, Run: s.Of, Progress: a.Progress, Prolong: a.Prolong,
		Env: func() record.Environment { return environment(as, nodes) },
		Far: func(e plan.End) (instrument.Endpoint, error) {
			return instrument.Endpoint{
				Name: e.String(), IP: e.IP.Addr(), MAC: string(e.MAC), MTU: e.MTU, Port: e.Port,
				Native: e.Face == chain.FaceNative, Far: far[e.Function],
			}, nil
		},
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

// planOf is the plan of a chain, with the links that draygen can measure, and the nodes.
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
	if p.Links = measurable(c, choice.Plan.Links); len(p.Links) == 0 {
		return nil, nil, fmt.Errorf("chain %s has no link that draygen can measure: one with a pod at each end, and with interfaces at both or at none", c.Name())
	}
	p.Functions = slices.Clone(p.Functions)
	for i := range p.Functions {
		p.Functions[i].CPUs = cpusOf(c, p.Functions[i].Name, nodes)
	}
	return &p, nodes, nil
}

// measurable are the links whose ends have pods and are of one kind: without privileges, no program
// sends frames from an interface to a native port.
func measurable(c *Chain, all []plan.Link) (some []plan.Link) {
	for _, l := range all {
		now := c.Link(l.Name)
		interfaces := 0
		for _, e := range l.Ends {
			if e.Face == chain.FaceNetdev {
				interfaces++
			}
		}
		if now.Runs() && (interfaces == 0 || interfaces == len(l.Ends)) {
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

// far is where draygen is in place of each function.
func (k *Kubectl) far(ctx context.Context, s *StandIn, as *Chain) (map[string]*instrument.Far, error) {
	all := map[string]*instrument.Far{}
	for _, l := range as.Status.Links {
		for _, e := range l.Ends {
			if e.Pod == "" || all[e.Function] != nil {
				continue
			}
			version, err := k.DraygenVersion(ctx, s, e.Pod)
			if err != nil {
				return nil, err
			}
			all[e.Function] = &instrument.Far{
				Machine: e.Node, Draygen: draygenPath, Version: version,
				Command: func(argv []string) *exec.Cmd { return k.command(context.Background(), s.exec(e.Pod, argv...)...) },
			}
		}
	}
	return all, nil
}

// environment describes the first node of a chain.
func environment(c *Chain, nodes []fleet.Node) record.Environment {
	env := record.Environment{}
	for _, n := range nodes {
		if slices.Contains(c.Nodes(), n.Name) && n.Inventory != nil {
			env = runner.OfHost(n.Inventory.Host)
			break
		}
	}
	env.Dray = release.Version()
	return env
}

// Conditions are the requirements of a link of the chain c, by the verdicts on the same link of its
// copy. What draygen cannot measure at all is what the nodes see of the applications' traffic: a delay
// between nodes, since only the nodes compare their clocks, and a link that is not measurable.
func (c *Chain) Conditions(link string, measured []verdict.Verdict) []Condition {
	var all []Condition
	now := c.Link(link)
	for _, v := range measured {
		if v.Link != link {
			continue
		}
		q := conditionOf(v)
		if seen := find(now.Requirements, v.Requirement); v.Verdict == verdict.NotMeasurable && seen.Status != "" && now.crosses() && verdict.IsDelay(v.Requirement) {
			q = seen
		}
		all = append(all, q)
	}
	for _, seen := range now.Requirements {
		if find(all, seen.Type).Status == "" {
			all = append(all, seen)
		}
	}
	return all
}

// conditionOf is a verdict as a condition.
func conditionOf(v verdict.Verdict) Condition {
	m := verdict.MessageOf(v)
	if v.Verdict != verdict.Met {
		m.At = v.Direction
	}
	q := Condition{Type: v.Requirement, Message: m.String(), Status: "Unknown", Since: time.Now()}
	switch v.Verdict {
	case verdict.Met:
		q.Status = isTrue
	case verdict.Missed:
		q.Status = isFalse
	}
	return q
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/plan/place"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// Placement is how good the choice of hosts is.
type Placement struct {
	Optimal bool       `json:"optimal"` // no placement costs less
	Cost    place.Cost `json:"cost"`
	Bound   place.Cost `json:"bound"` // no placement costs less than this
}

// String is one sentence about the placement.
func (p *Placement) String() string {
	const by = "the planner chose the hosts: "
	switch {
	case p.Optimal && p.Cost.Unmet == 0:
		return by + "no placement costs less"
	case p.Optimal:
		return by + fmt.Sprintf("links with an unmet requirement: %d, and no placement has fewer", p.Cost.Unmet)
	case p.Cost.Slow > p.Bound.Slow:
		return by + fmt.Sprintf("the ranks of all transports add up to %d, and no placement has less than %d: a gap of %.0f %%",
			p.Cost.Slow, p.Bound.Slow, 100*float64(p.Cost.Slow-p.Bound.Slow)/float64(p.Cost.Slow))
	}
	return by + "no placement has faster transports; another may have less delay or use fewer hosts"
}

// PlaceIn writes the hosts that the plan chose into the chain it is made from, so that
// they stay while the chain is up.
func (p *Plan) PlaceIn(c *chain.Chain) {
	for i := range c.Functions {
		if f := p.Function(c.Functions[i].Name); f != nil && f.On != "" {
			c.Functions[i].Host = f.On
		}
	}
}

// listAlternatives says for each function why it is on none of the other hosts.
func (p *planner) listAlternatives() {
	if p.on == nil || p.on.at == nil {
		return
	}
	placed := &place.Placement{Node: p.on.at}
	for f, all := range place.Alternatives(p.on.model, placed) {
		for _, a := range all {
			p.plan.Functions[f].Alternatives = append(p.plan.Functions[f].Alternatives,
				Alternative{Host: p.chain.Hosts.Names[a.Host], Reason: p.whyNot(f, a)})
		}
	}
}

// whyNot is the reason against an alternative, with everything else where it is.
func (p *planner) whyNot(f int, a place.Alternative) string {
	fn := &p.on.chain.Functions[f]
	switch a.Lost.Kind {
	case place.KindPin:
		return p.on.pinText(fn)
	case place.KindCPUs:
		return fmt.Sprintf("needs %s, and %d of %d are free there", cpusText(fn.CPUs.Number()), p.on.freeCPUs(f, a.Host), p.on.allCPUs(a.Host))
	case place.KindMemory:
		return fmt.Sprintf("needs %v of memory, which no node there has free", max(fn.Memory, fn.MachineMemory()))
	case place.KindLink:
		return p.linkText(f, a)
	case place.KindPath:
		path := &p.chain.Paths[a.Lost.Index]
		return fmt.Sprintf("path %s: its links would take longer than %v at p%v", path.Name, path.Requires.Latency, path.Requires.Percentile)
	case place.KindRate:
		return fmt.Sprintf("%s has no room for its links", lineName(p.chain.Hosts, a.Lost.Index))
	}
	return p.costText(a)
}

func (s *placing) pinText(f *chain.Function) string {
	if f.Host != "" {
		return fmt.Sprintf("the chain names the host %s", f.Host)
	}
	return "the function names CPUs that no node there has"
}

// freeCPUs are the most that a node of the host has free, without the function itself.
func (s *placing) freeCPUs(f, host int) int {
	most := 0
	for n, node := range s.model.Nodes {
		if node.Host != host {
			continue
		}
		free := node.CPUs
		for g, at := range s.at {
			if at == n && g != f {
				free -= s.model.Functions[g].CPUs
			}
		}
		most = max(most, free)
	}
	return most
}

// allCPUs are those of the host's largest node.
func (s *placing) allCPUs(host int) int {
	most := 0
	for _, node := range s.model.Nodes {
		if node.Host == host {
			most = max(most, node.CPUs)
		}
	}
	return most
}

func cpusText(n int) string {
	if n == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}

// linkText says which requirement of a link would have no evidence.
func (p *planner) linkText(f int, a place.Alternative) string {
	l := &p.chain.Links[p.on.links[a.Lost.Index]]
	n := p.needsOf(l)
	n.hosts = p.hostsWith(l, f, a.Host)
	for i, x := range n.hosts {
		for _, y := range n.hosts[:i] {
			if len(p.on.route(x, y).Lines) == 0 {
				return fmt.Sprintf("link %s: no line leads from %s to %s", l.Name, y, x)
			}
		}
	}
	n.underlay, n.via = p.between(n.hosts)
	for _, t := range p.candidates(n) {
		if ev := firstUnmet(p.evidence(t, n)); ev != nil {
			return fmt.Sprintf("link %s: %s %s, and %s is expected of %s (%s)", l.Name, ev.Requirement, ev.Required, ev.Expected, t.Name, ev.Source)
		}
	}
	return fmt.Sprintf("link %s: no transport joins its ports there", l.Name)
}

// hostsWith are the hosts of a link's functions with one of these on another host.
func (p *planner) hostsWith(l *chain.Link, f, host int) []string {
	var hosts []string
	for _, g := range p.on.ends(l) {
		name := p.chain.Functions[g].Host
		if g == f {
			name = p.chain.Hosts.Names[host]
		}
		if !slices.Contains(hosts, name) {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// costText says what an alternative costs more.
func (p *planner) costText(a place.Alternative) string {
	var names []string
	for _, l := range a.Links {
		names = append(names, p.chain.Links[p.on.links[l]].Name)
	}
	switch {
	case a.More.Unmet > 0:
		return fmt.Sprintf("%s would have an unmet requirement", linksText(names))
	case a.More.Slow > 0:
		return fmt.Sprintf("%s would be slower: the ranks of all transports grow by %d", linksText(names), a.More.Slow)
	case a.More.Slow == 0 && a.More.Delay > 0:
		return fmt.Sprintf("%v more delay of lines in all", a.More.Delay)
	case a.More == (place.Cost{Hosts: 1}):
		return "one more host would be in use"
	case a.More == (place.Cost{}):
		return "costs the same; the search came to it later"
	}
	return "costs no less in all"
}

func linksText(names []string) string {
	if len(names) == 1 {
		return "link " + names[0]
	}
	return "links " + parse.All(names)
}

// lineName is a group of lines as the chain has it.
func lineName(h *chain.Hosts, group int) string {
	if !h.Lined() {
		return "the underlay"
	}
	l := h.Lines[group]
	return fmt.Sprintf("the line from %s to %s", l.Between[0], l.Between[1])
}

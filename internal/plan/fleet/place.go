// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/units"
)

// Machine is a node as its kubelet describes it.
type Machine struct {
	Name   string
	Labels map[string]string
	CPUs   int         // whole ones that it gives to pods
	Memory units.Bytes // that it gives to pods
	Closed string      // why no more pods can start there, or ""
}

// Reasons for a node to be closed.
const (
	Cordoned = "it is cordoned"
	NotReady = "it is not ready"
)

// Placed is where the functions of a chain are, or why they are nowhere.
type Placed struct {
	Spots   []Spot // of each function; nil: there is no placement
	Refusal string // why there is none, and the smallest changes that help
	Note    string // what else there is to say, or ""
}

// Spot is the node of a function.
type Spot struct {
	Function string `json:"function"`
	Node     string `json:"node"`
	Reason   string `json:"reason"` // why there, and why not on some other nodes
}

// Site is a chain, and the cluster in which its functions are placed.
type Site struct {
	Chain    *chain.Chain
	Wanted   *manifest.Placement
	Choice   Choice
	Nodes    []Node
	Machines []Machine
}

// Open are the functions on nodes where more pods can start.
func (s *Site) Open(on map[string]string) map[string]string {
	all := map[string]string{}
	for function, node := range on {
		if slices.ContainsFunc(s.Machines, func(m Machine) bool { return m.Name == node && m.Closed == "" }) {
			all[function] = node
		}
	}
	return all
}

// Keep places the functions, and keeps the nodes that they had before if that is possible. Those
// in fixed stay where they are.
func (s *Site) Keep(fixed, before map[string]string) Placed {
	kept := s.Open(before)
	maps.Copy(kept, fixed)
	placed := s.Place(kept)
	if placed.Refusal != "" && !maps.Equal(kept, fixed) {
		placed = s.Place(fixed)
	}
	return placed
}

// Place places the functions. Those in fixed are on these nodes.
func (s *Site) Place(fixed map[string]string) Placed {
	g := ground{wanted: s.Wanted}
	return g.place(s, fixed)
}

func (g *ground) place(on *Site, fixed map[string]string) Placed {
	g.admit(on.Choice, on.Machines)
	switch n := len(g.hosts.Machines); {
	case n == 0:
		return Placed{Refusal: "placement: no node can take the chain's functions: " + strings.Join(g.refusals, "; ")}
	case n > chain.MaxMachines:
		return Placed{Refusal: fmt.Sprintf("placement: %d nodes can take the chain's functions, and the planner compares at most %d: give placement a nodeSelector", n, chain.MaxMachines)}
	}
	wanted := g.chain(on.Chain, on.Choice, fixed)
	for _, f := range wanted.Functions {
		if !g.has(f.Host) {
			why := append([]string{fmt.Sprintf("placement: function %s: no node that can take functions is %s, or is there", f.Name, f.Host)}, g.refusals...)
			return Placed{Refusal: strings.Join(why, "; ")}
		}
	}
	g.join()
	planner := on.Nodes[slices.IndexFunc(on.Nodes, func(n Node) bool { return n.Name == on.Choice.Nodes[0] })]
	if planner.Network != nil {
		g.hosts.Underlay.MTU = planner.Network.MTU
	}
	p, err := plan.Explain(wanted, planner.Inventory, plan.Held{})
	var infeasible *plan.Infeasible
	if errors.As(err, &infeasible) {
		return Placed{Refusal: unplaced(infeasible.Plan), Note: strings.Join(append(g.notes, on.Choice.Across.stuck(on.Chain)...), "; ")}
	}
	if err != nil {
		return Placed{Refusal: err.Error()}
	}
	if p.Placement.Cost.Unmet > 0 { // the chain's policy is to warn
		g.notes = append(g.notes, p.Placement.String())
	}
	placed := Placed{Note: strings.Join(g.notes, "; ")}
	for _, f := range p.Functions {
		placed.Spots = append(placed.Spots, Spot{f.Name, f.On, whyThere(f)})
	}
	return placed
}

// ground is the nodes that may have the functions, as hosts with lines.
type ground struct {
	wanted   *manifest.Placement
	hosts    chain.Hosts
	refusals []string // of the nodes that are none of them
	notes    []string
}

// admit takes the nodes that may have the functions.
func (g *ground) admit(choice Choice, machines []Machine) {
	machines = slices.Clone(machines)
	slices.SortFunc(machines, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range machines {
		if why := g.refuses(choice, m); why != "" {
			g.refusals = append(g.refusals, m.Name+": "+why)
			continue
		}
		g.hosts.Names = append(g.hosts.Names, m.Name)
		g.hosts.Machines = append(g.hosts.Machines, chain.Machine{Name: m.Name, Site: m.Labels[g.wanted.TopologyKey],
			NUMA: []chain.NUMANode{{CPUs: chain.CPURequest{Count: m.CPUs}, Memory: m.Memory}}})
	}
}

// refuses is why a node may have no functions, or "".
func (g *ground) refuses(choice Choice, m Machine) string {
	if m.Closed != "" {
		return m.Closed
	}
	if !slices.Contains(choice.Nodes, m.Name) {
		return "it cannot make the chain's links"
	}
	for label, value := range g.wanted.NodeSelector {
		if got, labelled := m.Labels[label]; !labelled || got != value {
			return fmt.Sprintf("it is not labelled %s=%s", label, value)
		}
	}
	if key := g.wanted.TopologyKey; key != "" && m.Labels[key] == "" {
		return "it has no label " + key
	}
	return ""
}

// has reports whether a node can take a function that names it, or its place, as its host.
func (g *ground) has(host string) bool {
	return host == "" || slices.ContainsFunc(g.hosts.Machines, func(m chain.Machine) bool { return m.Name == host || m.Site == host })
}

// join makes the lines: between places, from each node to the place where it is, or to one
// network.
func (g *ground) join() {
	h := &g.hosts
	everywhere := ""
	if len(g.wanted.Lines) == 0 {
		everywhere = "the network"
	}
	known := map[string]bool{}
	for _, m := range h.Machines {
		place := g.switchAt(m.Site)
		if everywhere != "" {
			place = everywhere
		}
		if place != "" {
			h.Lines = append(h.Lines, chain.HostLine{Between: []string{m.Name, place}})
			known[m.Site] = true
			continue
		}
		known[m.Name] = true
	}
	for _, l := range g.wanted.Lines {
		if !known[l.Between[0]] || !known[l.Between[1]] {
			g.notes = append(g.notes, fmt.Sprintf("the line from %s to %s is left out: no node that takes functions is at one of its ends", l.Between[0], l.Between[1]))
			continue
		}
		l.Between = []string{g.end(l.Between[0]), g.end(l.Between[1])}
		h.Lines = append(h.Lines, l)
	}
	if len(h.Lines) == 0 { // hosts without lines would be this machine's
		h.Lines = []chain.HostLine{{Between: []string{h.Names[0], "no other place"}}}
	}
}

// end is an end of a line: a node, or the switch of a place.
func (g *ground) end(place string) string {
	if g.wanted.TopologyKey == "" {
		return place
	}
	return g.switchAt(place)
}

// switchAt is the switch of a place, under a name that no node has; "" if nodes are places.
func (g *ground) switchAt(place string) string {
	if slices.Contains(g.hosts.Names, place) {
		return g.wanted.TopologyKey + "=" + place
	}
	return place
}

// chain is the chain with nodes as its hosts.
func (g *ground) chain(c *chain.Chain, choice Choice, fixed map[string]string) *chain.Chain {
	placed := *c
	placed.Hosts = &g.hosts
	placed.Functions, placed.Links = slices.Clone(c.Functions), slices.Clone(c.Links)
	for i := range placed.Functions {
		f := &placed.Functions[i]
		needs := g.wanted.Functions[f.Name]
		f.Host, f.CPUs, f.Memory = needs.Host, chain.CPURequest{Count: needs.CPUs}, needs.Memory
		if node := fixed[f.Name]; node != "" {
			f.Host = node
		}
	}
	for i := range placed.Links {
		l := &placed.Links[i]
		if made := choice.Plan.Link(l.Name); made != nil && HasOwnDevices(made.Transport) {
			l.Transport = made.Transport // which joins pods of one node
		}
	}
	return &placed
}

// unplaced is why there is no placement. A requirement without evidence follows from that.
func unplaced(p *plan.Plan) string {
	var texts []string
	for _, v := range p.Violations {
		if v.Subject == "placement" {
			texts = append(texts, v.String())
		}
	}
	if texts == nil {
		return violations(p)
	}
	return strings.Join(texts, ". ")
}

// maxAlternatives is how many other nodes a reason speaks of.
const maxAlternatives = 2

// whyThere is why a function is where it is, and not elsewhere. Which CPUs it gets there is not
// the planner's to say, but the kubelet's.
func whyThere(f plan.Function) string {
	text, _, _ := strings.Cut(f.Reason, "; ")
	for i, a := range f.Alternatives {
		if i == maxAlternatives {
			break
		}
		text += fmt.Sprintf("; not on %s: %s", a.Host, a.Reason)
	}
	return text
}

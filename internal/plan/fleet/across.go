// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// Across is what becomes of a chain's links if their ends are on different nodes.
type Across struct {
	Links map[string]plan.Link // by name
	Why   map[string]string    // by name, for links that cannot cross
}

// Link is a link between nodes, or nil.
func (a Across) Link(name string) *plan.Link {
	if l, ok := a.Links[name]; ok {
		return &l
	}
	return nil
}

// sorted are the links between nodes in the order of the plan.
func (a Across) sorted(c *plan.Plan) (all []plan.Link) {
	for _, l := range c.Links {
		if l := a.Link(l.Name); l != nil {
			all = append(all, *l)
		}
	}
	return all
}

// planAcross plans each link of a chain as one between nodes: as a chain with a host for
// each function. here is the chain on one node.
func planAcross(c *chain.Chain, n Node, here *plan.Plan) Across {
	a := Across{Links: map[string]plan.Link{}, Why: map[string]string{}}
	if n.Network == nil {
		for _, l := range c.Links {
			a.Why[l.Name] = "dray-net does not run on " + n.Name
		}
		return a
	}
	apart := *c
	apart.Functions = slices.Clone(c.Functions)
	apart.Hosts = &chain.Hosts{Underlay: chain.Underlay{MTU: n.Network.MTU}}
	for i := range apart.Functions {
		apart.Functions[i].Host = apart.Functions[i].Name
		apart.Hosts.Names = append(apart.Hosts.Names, apart.Functions[i].Name)
	}
	p, err := plan.Make(&apart, n.Inventory)
	for _, l := range c.Links {
		switch planned, violated := p.Link(l.Name), violationsOf(p, "link "+l.Name, c.Policy.OnInfeasible); {
		case ownDevices(here.Link(l.Name)):
			a.Why[l.Name] = "on one node, its ends are devices of " + here.Link(l.Name).Transport + ", which join no others"
		case violated != "":
			a.Why[l.Name] = violated
		case planned != nil && planned.Tunnel():
			a.Links[l.Name] = Bare(*planned)
		case err != nil:
			a.Why[l.Name] = err.Error()
		default:
			a.Why[l.Name] = "both its ends belong to one function"
		}
	}
	return a
}

// ownDevices reports whether the applications have devices of the link's transport. They cannot
// become others while the applications run.
func ownDevices(l *plan.Link) bool {
	return l != nil && slices.ContainsFunc(l.Ends, func(e plan.End) bool { return e.Face == chain.FaceDPDK && !e.Brokered() })
}

// violationsOf are the violations of a subject that a policy does not accept, as text.
func violationsOf(p *plan.Plan, subject string, policy chain.OnInfeasible) string {
	var texts []string
	for _, v := range p.Violations {
		if v.Subject == subject && (v.Hard || policy != chain.Warn) {
			texts = append(texts, v.String())
		}
	}
	return strings.Join(texts, ". ")
}

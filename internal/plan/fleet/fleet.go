// SPDX-License-Identifier: Apache-2.0

// Package fleet plans a chain on each node of a cluster, and chooses the nodes on which
// its links are the same.
package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/manifest"
)

// NoNode is why a chain has no plan in a cluster without inventories.
const NoNode = "no node has published an inventory: is the DaemonSet dray-node running?"

// Node is a node that has published its inventory.
type Node struct {
	Name      string
	Inventory *inventory.Inventory
	Network   *Network // nil: it has no links to other nodes
	Switch    *Network // of its switch; nil: it has none
	Fault     string   // why the inventory cannot be used, or ""
}

// Network is what a node offers to others.
type Network struct {
	MTU int `json:"mtu"` // of the network between nodes
}

// ReadNode reads what a node has published, in an object. owner is the node that
// owns the object; without an owner, the host's name is the node's.
func ReadNode(owner, object string, published map[string]string) Node {
	var inv inventory.Inventory
	if err := json.Unmarshal([]byte(published[manifest.KeyInventory]), &inv); err != nil {
		return Node{Name: cmp.Or(owner, object), Fault: "its inventory cannot be read: " + err.Error()}
	}
	n := Node{Name: cmp.Or(owner, inv.Host.Hostname, object), Inventory: &inv}
	inv.Host.Hostname = n.Name
	for key, network := range map[string]**Network{manifest.KeyNetwork: &n.Network, manifest.KeySwitch: &n.Switch} {
		text, ok := published[key]
		if !ok {
			continue
		}
		*network = &Network{}
		if err := json.Unmarshal([]byte(text), *network); err != nil {
			n.Fault = "what its " + strings.TrimSuffix(key, ".json") + " offers cannot be read: " + err.Error()
		}
	}
	// The kubelet runs the pods, whatever runtimes dray itself would find there.
	inv.Runtimes = []inventory.Item{{Name: string(chain.RuntimeExternal), Status: inventory.OK}}
	return n
}

// Planned is a chain on one node.
type Planned struct {
	Node    string
	Plan    *plan.Plan // also of an infeasible chain; nil if there is none at all
	Across  Across     // its links between this node and another like it
	Refusal string     // why the chain cannot be on this node, or ""
}

// Plan plans a chain on each node, in the order of their names.
func Plan(c *chain.Chain, nodes []Node) []Planned {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	all := make([]Planned, len(nodes))
	for i, n := range nodes {
		all[i] = planOn(c, n)
	}
	return all
}

func planOn(c *chain.Chain, n Node) Planned {
	if n.Fault != "" {
		return Planned{Node: n.Name, Refusal: n.Fault}
	}
	p, err := plan.Make(c, n.Inventory)
	if p != nil {
		for i := range p.Violations {
			p.Violations[i].Position = "" // in the text of an object, which has no lines
		}
	}
	var infeasible *plan.Infeasible
	switch {
	case errors.As(err, &infeasible):
		return Planned{Node: n.Name, Plan: p, Refusal: violations(p)}
	case err != nil:
		return Planned{Node: n.Name, Refusal: err.Error()}
	}
	return Planned{Node: n.Name, Plan: p, Across: planAcross(c, n, p)}
}

func violations(p *plan.Plan) string {
	texts := make([]string, len(p.Violations))
	for i, v := range p.Violations {
		texts[i] = v.String()
	}
	return strings.Join(texts, ". ")
}

// Choice is the plan of a chain for the cluster.
type Choice struct {
	Plan   *plan.Plan // nil: no node can do what the chain requires
	Across Across     // its links between nodes
	Nodes  []string   // on which the links are as in Plan and Across
	// Refusals say why the chain cannot be on the others: one text for all nodes that
	// refuse for one reason.
	Refusals []string
}

// Choose takes the largest group of nodes with the same links, of two the one with the
// first node.
func Choose(all []Planned) Choice {
	groups, order := map[string]*Choice{}, []*Choice(nil)
	why, reasons := map[string][]string{}, []string(nil)
	for _, n := range all {
		if n.Refusal != "" {
			if why[n.Refusal] == nil {
				reasons = append(reasons, n.Refusal)
			}
			why[n.Refusal] = append(why[n.Refusal], n.Node)
			continue
		}
		key := signature(slices.Concat(n.Plan.Links, n.Across.sorted(n.Plan))...)
		if groups[key] == nil {
			groups[key] = &Choice{Plan: n.Plan, Across: n.Across}
			order = append(order, groups[key])
		}
		groups[key].Nodes = append(groups[key].Nodes, n.Node)
	}
	var best Choice
	for _, g := range order {
		if len(g.Nodes) > len(best.Nodes) {
			best = *g
		}
	}
	for _, g := range order {
		if g.Plan != best.Plan {
			best.Refusals = append(best.Refusals, Names(g.Nodes)+": its links would differ from those on "+best.Nodes[0])
		}
	}
	for _, reason := range reasons {
		best.Refusals = append(best.Refusals, Names(why[reason])+": "+reason)
	}
	return best
}

// String is the choice in one sentence.
func (c Choice) String() string {
	switch {
	case c.Plan == nil && len(c.Refusals) == 0:
		return NoNode
	case c.Plan == nil:
		return strings.Join(c.Refusals, ". ")
	}
	text := "on " + Names(c.Nodes)
	if len(c.Plan.Warnings) > 0 {
		text += "; warning: " + strings.Join(c.Plan.Warnings, "; ")
	}
	if len(c.Refusals) > 0 {
		text += "; not on " + strings.Join(c.Refusals, "; ")
	}
	return text
}

// Bare is a link without the reasons for its transport: they differ from node to node
// and from day to day, and a claim has little space. What is required remains.
func Bare(l plan.Link) plan.Link {
	l.Reason, l.Rejected = "", nil
	evidence := l.Evidence
	l.Evidence = nil
	for _, e := range evidence {
		l.Evidence = append(l.Evidence, plan.Evidence{Requirement: e.Requirement, Required: e.Required})
	}
	return l
}

// Same reports whether two planned links are made in the same way, whatever the reasons for
// that and whatever is required of them: isolation only decides which transports there are.
func Same(a, b plan.Link) bool {
	a.Isolation, b.Isolation = "", ""
	return signature(a.With(plan.Limits{})) == signature(b.With(plan.Limits{}))
}

// SameLimits reports whether the same is required of two planned links.
func SameLimits(a, b plan.Link) bool {
	return signature(plan.Link{}.With(a.Limits())) == signature(plan.Link{}.With(b.Limits()))
}

// signature is equal for the same links.
func signature(links ...plan.Link) string {
	bare := make([]plan.Link, len(links))
	for i, l := range links {
		bare[i] = Bare(l)
	}
	text, err := json.Marshal(bare)
	if err != nil {
		panic("a planned link: " + err.Error()) // it holds only text and numbers
	}
	return string(text)
}

// Names lists some names: "n1, n2, n3 and 7 more".
func Names(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

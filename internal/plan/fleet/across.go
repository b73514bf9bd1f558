// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Across is what becomes of a chain's links if their ends are on different nodes.
type Across struct {
	Links map[string]plan.Link // by name
	Why   map[string]string    // by name, for links that cannot cross
	// Paths say which requirements of paths are not expected to hold if all links of the path cross.
	Paths []string
}

// Link is a link between nodes, or nil.
func (a Across) Link(name string) *plan.Link {
	if l, ok := a.Links[name]; ok {
		return &l
	}
	return nil
}

// stuck says which links of a chain cannot cross, and why.
func (a Across) stuck(c *chain.Chain) (all []string) {
	for _, l := range c.Links {
		if why := a.Why[l.Name]; why != "" {
			all = append(all, "link "+l.Name+" cannot cross nodes: "+strings.TrimPrefix(why, "link "+l.Name+": "))
		}
	}
	return all
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

// switches are the transports by a node's switch: on one node, and between nodes. The
// applications' devices are the same, so a link changes between the two while they run.
var switches = map[string]string{"ovs-dpdk": "ovs-dpdk-vxlan"}

// HasOwnDevices reports whether the applications of links of that transport open its devices by
// DPDK's own drivers.
func HasOwnDevices(transport string) bool {
	if transport == memif {
		return true
	}
	for here, apart := range switches {
		if transport == here || transport == apart {
			return true
		}
	}
	return false
}

// Transports of one node: memif joins applications without a switch, shm is memory of libdray's.
const (
	memif = "memif"
	shm   = "shm"
)

// planAcross plans each link of a chain as one between nodes. here is the chain on one node.
func planAcross(c *chain.Chain, n Node, here *plan.Plan) Across {
	a := Across{Links: map[string]plan.Link{}, Why: map[string]string{}}
	byNetwork := planApart(c, n.Inventory, n.Network)
	bySwitch := planApart(switched(c, here), n.Inventory, n.Switch)
	for i := range c.Links {
		l := &c.Links[i]
		made, queues := here.Link(l.Name), memoryQueues(c, l)
		switch _, bySwitches := switches[transportOf(made)]; {
		case queues != "" && transportOf(made) == shm:
			a.Why[l.Name] = "between nodes a port has no qdisc " + queues + ", but at most a token bucket: leave out qos, or write max_bitrate in its place"
		case bySwitches:
			bySwitch.add(&a, l.Name, "dray-switch does not run on "+n.Name)
		case n.Network != nil && ownDevices(made):
			a.Why[l.Name] = "on one node, its ends are devices of " + made.Transport + ", which join no others"
		default:
			byNetwork.add(&a, l.Name, "dray-net does not run on "+n.Name)
		}
	}
	a.addPaths(byNetwork.plan)
	if byNetwork.plan == nil {
		a.addPaths(bySwitch.plan)
	}
	return a
}

// addPaths adds what a plan between nodes expects to be missed. A path with a link that cannot cross is
// not in question. If only the network's MTU is why, the path's own MTU is.
func (a *Across) addPaths(p *plan.Plan) {
	if p == nil {
		return
	}
	for _, path := range p.Paths {
		var stay, narrow int // links that cannot cross, and those of them that are only too wide
		for _, s := range path.Steps {
			if a.Link(s.Link) != nil {
				continue
			}
			stay++
			if isNarrow(p, s.Link) {
				narrow++
			}
		}
		for _, v := range p.Violations {
			counts := stay == 0 || stay == narrow && strings.HasPrefix(v.Constraint, "mtu ")
			if counts && v.Subject == "path "+path.Name {
				a.Paths = append(a.Paths, fmt.Sprintf("%s: %s is not expected if its links cross nodes, as %s: keep its pods on one node, or ask for a placement",
					v.Subject, v.Constraint, v.Reason))
			}
		}
	}
}

// isNarrow reports whether a link has no tunnel because its packets do not fit into one.
func isNarrow(p *plan.Plan, link string) bool {
	return slices.ContainsFunc(p.Violations, func(v plan.Violation) bool {
		return v.Subject == "link "+link && strings.HasPrefix(v.Constraint, "mtu ")
	})
}

// memoryQueues is the first qdisc of a link's ports that they have in shared memory alone: nodes
// set only a token bucket elsewhere. "": there is none.
func memoryQueues(c *chain.Chain, l *chain.Link) string {
	all := []*chain.Qdisc{l.QoS}
	for _, e := range l.Ends {
		if f := c.Function(e.Function); f != nil && f.Port(e.Port) != nil {
			all = append(all, f.Port(e.Port).QoS)
		}
	}
	for _, q := range all {
		switch {
		case q == nil:
		case len(q.Classes) > 0:
			return q.Kind + " with classes"
		case q.Child != nil:
			return q.Kind + " over " + q.Child.Kind
		case q.Kind != "tbf":
			return q.Kind
		}
	}
	return ""
}

func transportOf(l *plan.Link) string {
	if l == nil {
		return ""
	}
	return l.Transport
}

// switched is the chain in which each link that a switch makes on one node is made by
// switches between nodes.
func switched(c *chain.Chain, here *plan.Plan) *chain.Chain {
	out := *c
	out.Links = slices.Clone(c.Links)
	for i := range out.Links {
		if tunnel, ok := switches[transportOf(here.Link(out.Links[i].Name))]; ok {
			out.Links[i].Transport = tunnel
		}
	}
	return &out
}

// apart is the plan of a chain with a host for each function; no plan without a network.
type apart struct {
	plan   *plan.Plan
	err    error
	policy chain.OnInfeasible
}

func planApart(c *chain.Chain, inv *inventory.Inventory, network *Network) apart {
	if network == nil {
		return apart{}
	}
	each := *c
	each.Functions = slices.Clone(c.Functions)
	each.Hosts = &chain.Hosts{Underlay: chain.Underlay{MTU: network.MTU}}
	for i := range each.Functions {
		each.Functions[i].Host = each.Functions[i].Name
		each.Hosts.Names = append(each.Hosts.Names, each.Functions[i].Name)
	}
	p, err := plan.Make(&each, inv)
	return apart{p, err, c.Policy.OnInfeasible}
}

// add adds a link of the plan, or why there is none.
func (p apart) add(a *Across, link, without string) {
	if p.plan == nil {
		if a.Why[link] = without; p.err != nil {
			a.Why[link] = p.err.Error()
		}
		return
	}
	switch planned, violated := p.plan.Link(link), violationsOf(p.plan, "link "+link, p.policy); {
	case violated != "":
		a.Why[link] = violated
	case planned != nil && planned.Tunnel():
		a.Links[link] = Bare(*planned)
	case p.err != nil:
		a.Why[link] = p.err.Error()
	default:
		a.Why[link] = "both its ends belong to one function"
	}
}

// ownDevices reports whether the applications have devices of the link's transport. They cannot
// become others while the applications run.
func ownDevices(l *plan.Link) bool { return l != nil && slices.ContainsFunc(l.Ends, OwnDevice) }

// OwnDevice reports whether an end is a device of the link's transport, which DPDK's own driver opens.
func OwnDevice(e plan.End) bool { return e.Face == chain.FaceDPDK && !e.Brokered() }

// Listener is the index of the end of a memif link that listens: the one whose function's name comes
// first. Since every connecting end waits for its other end, no functions wait for each other.
func Listener(l *plan.Link) int {
	if l.Ends[0].Function < l.Ends[1].Function {
		return 0
	}
	return 1
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

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// needs is what one link requires of a transport, with its ends resolved.
type needs struct {
	link    *chain.Link
	ports   []portEnd
	uplinks []chain.End
	mtu     int            // of every port: a valid chain has one per link
	mtuPos  parse.Position // where the first port states it
	load    units.Bitrate
	shape   *chain.Qdisc   // of the ports without their own
	shapes  []*chain.Qdisc // of every port that has one, its own or the link's
	tight   *chain.Qdisc   // the most restrictive of shapes
	// privileged: the chain permits transports that need privileges.
	privileged bool
	functions  map[string]*chain.Function // of the ports
	hosts      []string                   // the simulated hosts that the ports are on
	underlay   chain.Underlay             // between these hosts
	via        string                     // what is between them: "the underlay"
	interfaces []inventory.Interface      // of the host
	driver     *inventory.Item            // net_dray on the host; nil: not known
}

// portEnd is a link end that is a function's port.
type portEnd struct {
	end  chain.End
	port *chain.Port
}

func (p *planner) needsOf(l *chain.Link) *needs {
	n := &needs{link: l, load: l.Load, shape: completed(wantedShape(l)), privileged: p.chain.Policy.Privileged, functions: map[string]*chain.Function{}, interfaces: p.inv.Interfaces,
		driver: inventory.Find(p.inv.DPDK, dpdk.NetDray)}
	if p.chain.Hosts != nil {
		n.hosts = p.chain.Simulated(l)
		n.underlay, n.via = p.between(n.hosts)
	}
	switch {
	case l.SlotLoad() != nil:
		n.load = l.SlotLoad().Bitrate()
	case !l.HasLoad:
		n.load = l.Requires.MinBitrate / 10
	}
	for _, e := range l.Ends {
		if e.IsUplink() {
			n.uplinks = append(n.uplinks, e)
			continue
		}
		f := p.chain.Function(e.Function)
		n.functions[e.Function] = f
		port := f.Port(e.Port)
		n.ports = append(n.ports, portEnd{end: e, port: port})
		n.shapes = append(n.shapes, shapesOf(completed(port.QoS), n.shape)...)
		if n.mtu == 0 {
			n.mtu, n.mtuPos = port.MTU, at(port.FieldPos, "mtu", port.Pos)
		}
	}
	n.tight = tightest(n.shapes, n.mtu)
	return n
}

// shapesOf are the qdiscs that a port's packets pass: its own in place of the link's,
// or in addition to it if the switch has the link's.
func shapesOf(own, link *chain.Qdisc) []*chain.Qdisc {
	switch {
	case own != nil && link.AtSwitch():
		return []*chain.Qdisc{own, link}
	case own != nil:
		return []*chain.Qdisc{own}
	case link != nil:
		return []*chain.Qdisc{link}
	}
	return nil
}

func (n *needs) subject() string { return "link " + n.link.Name }

// sameFunction reports whether all ports belong to one function.
func (n *needs) sameFunction() bool {
	for _, e := range n.ports {
		if e.end.Function != n.ports[0].end.Function {
			return false
		}
	}
	return true
}

// anyBeside reports whether a port of the link is no interface: its packets bypass the
// kernel's addresses.
func (n *needs) anyBeside() bool {
	return slices.ContainsFunc(n.ports, func(e portEnd) bool { return e.port.Face != chain.FaceNetdev })
}

// field is the position of a field of the link, or else of the link.
func (n *needs) field(name string) parse.Position {
	return at(n.link.FieldPos, name, n.link.Pos)
}

// requirement is the position of a requirement, or else of the link.
func (n *needs) requirement(name string) parse.Position {
	return at(n.link.Requires.Pos, name, n.link.Pos)
}

// shapePos is the position of a qdisc of a kind in the file.
func (n *needs) shapePos(kind string) parse.Position {
	for _, e := range n.ports {
		if q := e.port.QoS.Find(kind); q != nil {
			return at(q.FieldPos, "qdisc", q.Pos)
		}
	}
	if q := n.link.QoS.Find(kind); q != nil {
		return at(q.FieldPos, "qdisc", n.field("qos"))
	}
	return n.requirement("max_bitrate")
}

// at returns the position of a field in the file, or else of its owner.
func at(fields map[string]parse.Position, name string, owner parse.Position) parse.Position {
	return cmp.Or(fields[name], owner)
}

// checkLink finds what makes a link impossible with any transport.
func (p *planner) checkLink(n *needs) {
	for _, e := range n.uplinks {
		p.checkUplink(n, e)
	}
}

// checkQdiscs finds what the kernel lacks, if it is the kernel that queues.
func (p *planner) checkQdiscs(n *needs, t *inventory.Transport) {
	if t != nil && t.Caps.PortQueues {
		return
	}
	var checked []string
	for _, q := range n.shapes {
		for _, kind := range q.Kinds() {
			if !slices.Contains(checked, kind) && slices.Contains(chain.KernelQdiscs(), kind) {
				checked = append(checked, kind)
				p.checkQdisc(n, kind)
			}
		}
	}
}

func (p *planner) checkUplink(n *needs, e chain.End) {
	v := Violation{Subject: n.subject(), Constraint: e.String(), Pos: cmp.Or(e.Pos, n.link.Pos), Hard: true}
	i := findInterface(p.inv, e.Uplink)
	switch {
	case i == nil:
		v.Reason = "this host has no such interface"
		v.Fix = "use one of: " + orNone(interfaceNames(p.inv))
	case !i.Up:
		v.Reason = "the interface is down"
		v.Fix = "ip link set " + i.Name + " up"
	case n.mtu > i.MTU:
		v.Constraint = fmt.Sprintf("mtu %d", n.mtu)
		v.Reason = fmt.Sprintf("%s carries packets of at most %d bytes", e, i.MTU)
		v.Fix = fmt.Sprintf("lower the port's mtu to %d, or ip link set %s mtu %d", i.MTU, i.Name, n.mtu)
		v.Pos = n.mtuPos
	default:
		return
	}
	p.violate(v)
}

// checkQdisc checks whether the kernel has a qdisc of the link.
func (p *planner) checkQdisc(n *needs, kind string) {
	v := Violation{
		Subject:    n.subject(),
		Constraint: "qdisc " + kind,
		Fix:        "use one of: " + orNone(joinNames(usable(p.inv.Qdiscs))),
		Pos:        n.shapePos(kind),
		Hard:       true,
	}
	item := inventory.Find(p.inv.Qdiscs, kind)
	if item != nil && item.Usable() {
		return
	}
	v.Reason = "unsupported: this kernel has no sch_" + kind
	if item != nil && item.Reason != "" {
		v.Reason = "unsupported: " + item.Reason
	}
	if item != nil && item.Fix != "" {
		v.Fix = item.Fix + "; or " + v.Fix
	}
	v.Fix = fmt.Sprintf("run in a lab guest, which has it: dray lab --need %s --out DIR -- dray run …; or %s", kind, v.Fix)
	p.violate(v)
}

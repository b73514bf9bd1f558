// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/inventory"
)

// needs is what one link asks of a transport, with its ends resolved.
type needs struct {
	link    *chain.Link
	ports   []portEnd
	uplinks []chain.End
	mtu     int            // the largest of its ports'
	mtuPos  chain.Position // of the port with that MTU
	load    chain.Bitrate
	shape   *chain.Qdisc
}

// portEnd is an end that is a function's port.
type portEnd struct {
	end  chain.End
	port *chain.Port
}

func (p *planner) needsOf(l *chain.Link) *needs {
	n := &needs{link: l, load: l.Load, shape: shapeOf(l)}
	if !l.HasLoad {
		n.load = l.Requires.MinBitrate / 10
	}
	for _, e := range l.Ends {
		if e.IsUplink() {
			n.uplinks = append(n.uplinks, e)
			continue
		}
		port := p.chain.Function(e.Function).Port(e.Port)
		n.ports = append(n.ports, portEnd{end: e, port: port})
		if port.MTU > n.mtu {
			n.mtu, n.mtuPos = port.MTU, port.Pos
		}
	}
	return n
}

func (n *needs) subject() string { return "link " + n.link.Name }

// sameFunction reports whether all ports are ports of one function.
func (n *needs) sameFunction() bool {
	for _, e := range n.ports {
		if e.end.Function != n.ports[0].end.Function {
			return false
		}
	}
	return true
}

// pos is where the file states a requirement, or else the link.
func (n *needs) pos(requirement string) chain.Position {
	return cmp.Or(n.link.Requires.Pos[requirement], n.link.Pos)
}

func (n *needs) shapePos() chain.Position {
	if n.link.QoS != nil {
		return cmp.Or(n.link.QoS.Pos, n.link.Pos)
	}
	return n.pos("max_bitrate")
}

// checkLink finds what makes a link impossible whatever carries it.
func (p *planner) checkLink(n *needs) {
	for _, e := range n.ports {
		if e.port.MTU != n.mtu {
			p.violate(Violation{
				Subject:    n.subject(),
				Constraint: fmt.Sprintf("mtu %d of %s", e.port.MTU, e.end),
				Reason:     fmt.Sprintf("another port of the link has an MTU of %d, and larger packets would vanish", n.mtu),
				Fix:        "give all ports of a link the same mtu",
				Pos:        e.port.Pos,
				Hard:       true,
			})
		}
	}
	for _, e := range n.uplinks {
		p.checkUplink(n, e)
	}
	p.checkQdisc(n)
}

func (p *planner) checkUplink(n *needs, e chain.End) {
	v := Violation{Subject: n.subject(), Constraint: e.String(), Pos: cmp.Or(e.Pos, n.link.Pos), Hard: true}
	i := findInterface(p.inv, e.Uplink)
	switch {
	case i == nil:
		v.Reason = "the host has no such interface"
		v.Fix = "use one of: " + orNone(interfaceNames(p.inv))
	case !i.Up:
		v.Reason = "the interface is down"
		v.Fix = "ip link set " + i.Name + " up"
	case n.mtu > i.MTU:
		v.Constraint = fmt.Sprintf("mtu %d", n.mtu)
		v.Reason = fmt.Sprintf("%s carries packets of %d bytes at the most", e, i.MTU)
		v.Fix = fmt.Sprintf("lower the port's mtu to %d, or ip link set %s mtu %d", i.MTU, i.Name, n.mtu)
		v.Pos = n.mtuPos
	default:
		return
	}
	p.violate(v)
}

// checkQdisc asks whether the kernel has the queueing discipline of the link.
func (p *planner) checkQdisc(n *needs) {
	if n.shape == nil {
		return
	}
	v := Violation{
		Subject:    n.subject(),
		Constraint: "qdisc " + n.shape.Kind,
		Fix:        "use one of: " + orNone(joinNames(usable(p.inv.Qdiscs))),
		Pos:        n.shapePos(),
		Hard:       true,
	}
	item := inventory.Find(p.inv.Qdiscs, n.shape.Kind)
	if item != nil && item.Status != inventory.Missing {
		return
	}
	v.Reason = "unsupported: this kernel has no sch_" + n.shape.Kind
	if item != nil && item.Reason != "" {
		v.Reason = "unsupported: " + item.Reason
	}
	if item != nil && item.Fix != "" {
		v.Fix = item.Fix + "; or " + v.Fix
	}
	p.violate(v)
}

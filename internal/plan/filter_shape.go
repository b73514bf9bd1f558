// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

func shapeObstacle(t *inventory.Transport, n *needs) *obstacle {
	if q := n.shape; q.AtSwitch() && !t.Caps.OwnShapes {
		return &obstacle{
			constraint: fmt.Sprintf("qdisc %s at the switch", q.Kind),
			reason:     "has no switch that sets a qdisc",
			fix:        "use transport: ovs or ovs-dray, or leave out at",
			pos:        at(n.link.QoS.FieldPos, "at", n.shapePos(q.Kind)),
		}
	}
	if t.Caps.PortQueues {
		return portQueuesObstacle(n)
	}
	if o := userOnlyObstacle(n); o != nil {
		return o
	}
	if t.Caps.Shapes && t.Caps.SameNetns {
		return ownShapeObstacle(n)
	}
	if n.tight == nil || t.Caps.Shapes {
		return nil
	}
	return &obstacle{
		constraint: "qdisc " + n.tight.Kind,
		reason:     "cannot set a qdisc on its ports",
		fix:        "leave out qos and max_bitrate, or use a transport that shapes",
		pos:        n.shapePos(n.tight.Kind),
	}
}

// ownShapeObstacle is for a transport whose ports share one interface.
func ownShapeObstacle(n *needs) *obstacle {
	for _, e := range n.ports {
		if e.port.QoS != nil {
			return &obstacle{
				constraint: "qos of " + e.end.String(),
				reason:     "has one qdisc for all its ports",
				fix:        "set qos on the link, or use another transport",
				pos:        at(e.port.FieldPos, "qos", e.port.Pos),
			}
		}
	}
	return nil
}

// userOnlyObstacle is for a transport whose ports do not queue themselves.
func userOnlyObstacle(n *needs) *obstacle {
	for _, q := range n.shapes {
		if q.UserOnly() {
			return &obstacle{
				constraint: "qdisc " + q.Kind + classesText(q),
				reason:     "has no such queues: only ports that libdray opens on shared memory have them",
				fix:        "use native or dpdk ports on transport shm, or on ovs-dray if the chain is on one machine",
				pos:        n.shapePos(q.Kind),
			}
		}
	}
	return nil
}

func classesText(q *chain.Qdisc) string {
	if len(q.Classes) > 0 && q.Kind != "prio" {
		return " with classes"
	}
	return ""
}

// portQueuesObstacle is for a transport whose ports queue what they send.
func portQueuesObstacle(n *needs) *obstacle {
	for _, e := range n.ports {
		for _, q := range shapesOf(e.port.QoS, wantedShape(n.link)) {
			_, err := q.InPort(n.mtu)
			var fault *chain.QueueFault
			if errors.As(err, &fault) {
				return &obstacle{
					constraint: "qdisc " + q.Kind,
					reason:     "cannot queue so: " + fault.Reason,
					fix:        fault.Fix,
					pos:        n.shapePos(q.Kind),
				}
			}
			if e.port.Queues > 1 {
				return &obstacle{
					constraint: fmt.Sprintf("queues %d of %s", e.port.Queues, e.end),
					reason:     fmt.Sprintf("queues what a port with a qdisc sends in one order, and so takes one queue; the qdisc is %s", q.Kind),
					fix:        "write queues: 1, or leave out qos and max_bitrate",
					pos:        at(e.port.FieldPos, "queues", e.port.Pos),
				}
			}
		}
	}
	return nil
}

// over is what the link requires of that transport: qdiscs are completed as its ports
// have them.
func (n *needs) over(t *inventory.Transport) *needs {
	if !t.Caps.PortQueues || len(n.shapes) == 0 {
		return n
	}
	c := *n
	c.shapes = nil
	for _, e := range n.ports {
		c.shapes = append(c.shapes, shapesOf(n.inPort(e.port.QoS), n.inPort(wantedShape(n.link)))...)
	}
	c.tight = tightest(c.shapes, n.mtu)
	return &c
}

// inPort is a qdisc as a port has it; nil if there is none, or it has an obstacle.
func (n *needs) inPort(q *chain.Qdisc) *chain.Qdisc {
	if q == nil {
		return nil
	}
	made, err := q.InPort(n.mtu)
	if err != nil {
		return nil
	}
	return made
}

// setPortQueues plans the queues of ports that queue themselves.
func setPortQueues(l *Link, n *needs, t *inventory.Transport) {
	if !t.Caps.PortQueues {
		return
	}
	l.Shape = n.inPort(wantedShape(n.link))
	for i := range l.Ends {
		for _, e := range n.ports {
			if e.end.Function == l.Ends[i].Function && e.end.Port == l.Ends[i].Port {
				l.Ends[i].Shape = n.inPort(e.port.QoS)
			}
		}
	}
}

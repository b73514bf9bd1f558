// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/meet"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// The ends of a link of the node's switch are devices of net_virtio_user. Each listens at a socket
// in a file system of its container, and dray-eal shows the socket to the switch. If the ends are
// on two nodes, their switches have a tunnel, and the devices stay as they are.

// switched reports whether the node's switch has the ports of a link.
func switched(l *plan.Link) bool { return l.Transport == ovsdpdk.Name }

// checkSwitched refuses a link whose ports a switch does not have.
func checkSwitched(l *plan.Link) error {
	for _, e := range l.Ends {
		if e.Face != chain.FaceDPDK {
			return fmt.Errorf("link %s: port %s is no device of DPDK, and the switch of a node joins no others", l.Name, e)
		}
	}
	return nil
}

// vhostDevice is the device of a port of the switch.
func vhostDevice(p *claims.Port) dpdk.Vdev {
	v := vhost.Vdev(specOf(p.Link.Name, &p.Link), p.End())
	v.Dir = v.Inside()
	return v
}

// switchedOf is this node's part of a switched link; nil if the switch does not have it. unknown: nobody
// says where the other end is, so what the switch has stays as it is.
func (l *links) switchedOf(name string, c *claims.Claim, p *claims.Port) (part *nodeswitch.Link, unknown bool) {
	if !switched(&p.Link) {
		return nil, false
	}
	part = &nodeswitch.Link{Name: name, MTU: p.Link.MTU, Learning: p.Link.Forwarding == chain.ForwardingLearning}
	if p.Across == nil {
		return part, false
	}
	peer, known := l.peers.of(c, p)
	if peer == nil {
		return part, !known
	}
	part.Tunnel = true
	if addr, known := peer.address(); known {
		part.Peer = &nodeswitch.Peer{Addr: addr, VNI: peer.tunnel.VNI}
	}
	return part, false
}

// switchPort is the port of an end of a link.
func (l *links) switchPort(name string, p *claims.Port) nodeswitch.Port {
	own := p.Link.Ends[p.End()]
	return nodeswitch.Port{End: p.End(), MAC: own.MAC, Queues: own.Queues, Door: nodeswitch.DoorOf(l.sw.Dir, name, p.End())}
}

// introductions are the meetings of the switch with the applications of a link.
func (w *wish) introductions() (all []meeting) {
	for _, p := range w.switched.Ports {
		end := w.spec.Ends[p.End]
		all = append(all, meeting{link: w.spec.Link, end: p.End, Meeting: meet.Meeting{
			Name: fmt.Sprintf("%s/%d", w.spec.Link, p.End),
			Ends: [2]meet.End{{Socket: end.Socket, User: end.User}, {Socket: p.Door}},
		}})
	}
	return all
}

// switchLinks makes the switch have exactly the links that are wished for, and notes where it receives
// those of other nodes. A node without a switch has none.
func (l *links) switchLinks(ctx context.Context, all []claims.Claim, wishes map[string]*wish, received tunnels, found faults) {
	wanted, prune := ofSwitch(wishes)
	made, info, err := l.askSwitch(ctx, wanted, prune)
	if len(wanted) > 0 || !prune {
		// The broker's sockets for the switch are there, also before that has started.
		err = errors.Join(err, os.MkdirAll(l.sw.Dir, 0o755))
	}
	if errors.Is(err, nodeswitch.ErrAbsent) && len(wanted) == 0 {
		return
	}
	if err != nil {
		l.log.Error("links of the switch", "error", err)
	}
	for _, w := range wanted {
		if err != nil {
			wishes[w.Name].unknown, received.unknown[w.Name] = true, true
			found.blame(all, w.Name, bothEnds, fmt.Errorf("link %s: %w; look at the pod dray-switch of this node", w.Name, err))
		}
	}
	for _, m := range made {
		if m.Error != "" {
			l.log.Error("link of the switch", "link", m.Name, "error", m.Error)
			found.blame(all, m.Name, bothEnds, fmt.Errorf("link %s: %s", m.Name, m.Error))
			if w := wishes[m.Name]; w != nil {
				w.faulty = true
			}
		}
		if m.VNI > 0 {
			received.at[m.Name] = v1alpha1.Tunnel{Address: info.Addr.String(), VNI: m.VNI}
		}
	}
}

// ofSwitch are the links that the switch has to have, in order. prune: it has no others.
func ofSwitch(wishes map[string]*wish) (wanted []nodeswitch.Link, prune bool) {
	wanted, prune = []nodeswitch.Link{}, true
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		switch w := wishes[name]; {
		case w.switched == nil:
		case w.unknown:
			prune = false // the switch may have it
		default:
			wanted = append(wanted, *w.switched)
		}
	}
	return wanted, prune
}

func (l *links) askSwitch(ctx context.Context, wanted []nodeswitch.Link, prune bool) (made []nodeswitch.Made, info nodeswitch.Info, err error) {
	if info, err = l.sw.Info(ctx); err == nil {
		made, err = l.sw.Apply(ctx, wanted, prune)
	}
	return made, info, err
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// obstacle is why a transport cannot realise a link at all.
type obstacle struct {
	constraint string
	reason     string // one clause, to follow the transport's name
	fix        string
	pos        parse.Position
}

// filters run in this order: properties of the link first, then of the host. The
// transport that passes most filters is the nearest miss.
var filters = []func(*inventory.Transport, *needs) *obstacle{
	hostsObstacle, faceObstacle, queuesObstacle, isolationObstacle, privilegeObstacle, oneUserObstacle, hugePagesObstacle, uplinkObstacle, uplinksObstacle, netnsObstacle, endsObstacle,
	shapeObstacle, mtuObstacle, underlayMTUObstacle, messageObstacle, forwardingObstacle, statusObstacle, vfsObstacle, driverObstacle,
}

// firstObstacle returns the first reason why t cannot realise the link, or nil, and how
// many filters t passed.
func firstObstacle(t *inventory.Transport, n *needs) (*obstacle, int) {
	for passed, filter := range filters {
		if o := filter(t, n); o != nil {
			return o, passed
		}
	}
	return nil, len(filters)
}

func faceObstacle(t *inventory.Transport, n *needs) *obstacle {
	for _, e := range n.ports {
		if n.serves(t, e) {
			continue
		}
		if n.inMachine(e) && e.port.Face == chain.FaceDPDK {
			return &obstacle{
				constraint: fmt.Sprintf("face dpdk of %s, in a virtual machine", e.end),
				reason:     "makes no device for a virtual machine: its memory or sockets are on the host",
				fix:        "use transport: vhost-user or ovs-dpdk, or another runtime",
				pos:        at(e.port.FieldPos, "face", e.port.Pos),
			}
		}
		if n.reaches(t, e) {
			return &obstacle{
				constraint: "virtual machine of " + e.end.String(),
				reason:     "keeps a CPU busy, and joins virtual machines only if the link names it",
				fix:        "use transport: " + t.Name,
				pos:        n.field("transport"),
			}
		}
		if n.inMachine(e) && e.port.Face == chain.FaceNative {
			return &obstacle{
				constraint: fmt.Sprintf("face native of %s, in a virtual machine", e.end),
				reason:     "has no memory that can be a device of a virtual machine",
				fix:        "use transport: shm, or another runtime",
				pos:        at(e.port.FieldPos, "face", e.port.Pos),
			}
		}
		return &obstacle{
			constraint: fmt.Sprintf("face %s of %s", e.port.Face, e.end),
			reason:     fmt.Sprintf("serves only ports with face %s", strings.Join(t.Caps.Faces, ", ")),
			fix:        "use face: " + strings.Join(t.Caps.Faces, " or "),
			pos:        at(e.port.FieldPos, "face", e.port.Pos),
		}
	}
	need := t.Caps.NeedsFace
	if need == "" || slices.ContainsFunc(n.ports, func(e portEnd) bool { return string(e.port.Face) == need || n.machine(t, e) }) {
		return nil
	}
	return &obstacle{
		constraint: "a port with face " + need,
		reason:     "serves only links with at least one such port",
		fix:        "use face: " + need + " for one, or another transport",
		pos:        n.field("transport"),
	}
}

// serves reports whether the transport supports the port's face.
func (n *needs) serves(t *inventory.Transport, e portEnd) bool {
	if n.reaches(t, e) {
		return n.machine(t, e)
	}
	if n.inMachine(e) && e.port.Face == chain.FaceDPDK && !t.Caps.Machines {
		return false
	}
	if n.inMachine(e) && e.port.Face == chain.FaceNative && !t.Caps.MachineMemory {
		return false
	}
	return slices.Contains(t.Caps.Faces, string(e.port.Face))
}

// machine reports whether the transport reaches the port's VM directly, as it does if
// the chain names it. auto takes no such transport for a VM: the interfaces of other
// transports keep no CPU busy.
func (n *needs) machine(t *inventory.Transport, e portEnd) bool {
	return n.reaches(t, e) && n.link.Transport != chain.TransportAuto
}

// reaches reports whether the port is an interface of a VM and the transport can reach
// a VM directly.
func (n *needs) reaches(t *inventory.Transport, e portEnd) bool {
	return t.Caps.Machines && n.inMachine(e) && e.port.Face == chain.FaceNetdev
}

// inMachine reports whether the port belongs to a virtual machine.
func (n *needs) inMachine(e portEnd) bool {
	f := n.functions[e.end.Function]
	return f != nil && f.Runtime == chain.RuntimeVM
}

// nativeQueues is the maximum queue count of a port that libdray opens
// (dataplane/port/PROTOCOL.md, section 3).
const nativeQueues = 16

func queuesObstacle(t *inventory.Transport, n *needs) *obstacle {
	if !slices.Contains(t.Caps.Faces, string(chain.FaceNative)) {
		return nil
	}
	for _, e := range n.ports {
		if e.port.Face == chain.FaceNetdev || e.port.Queues <= nativeQueues {
			continue
		}
		return &obstacle{
			constraint: fmt.Sprintf("queues %d of %s", e.port.Queues, e.end),
			reason:     fmt.Sprintf("gives a native or dpdk port at most %d queues", nativeQueues),
			fix:        fmt.Sprintf("lower the port's queues to %d", nativeQueues),
			pos:        at(e.port.FieldPos, "queues", e.port.Pos),
		}
	}
	return nil
}

// strictness orders the isolation levels; each satisfies all below it.
var strictness = map[chain.Isolation]int{
	chain.IsolationSlice:          1,
	chain.IsolationLink:           2,
	chain.IsolationNoPeerMemory:   3,
	chain.IsolationNoSharedMemory: 4,
}

func isolationObstacle(t *inventory.Transport, n *needs) *obstacle {
	if strictness[chain.Isolation(t.Caps.Isolation)] >= strictness[n.link.Isolation] {
		return nil
	}
	return &obstacle{
		constraint: fmt.Sprintf("isolation %s", n.link.Isolation),
		reason:     fmt.Sprintf("isolates only up to level %q", t.Caps.Isolation),
		fix:        fmt.Sprintf("use isolation: %s", t.Caps.Isolation),
		pos:        n.field("isolation"),
	}
}

func privilegeObstacle(t *inventory.Transport, n *needs) *obstacle {
	if !t.Caps.Privileged || n.privileged {
		return nil
	}
	return &obstacle{
		constraint: "policy privileged: false",
		reason:     "needs " + t.Caps.Privileges,
		fix:        "allow it with policy: {privileged: true}, or use another transport",
		pos:        n.field("transport"),
	}
}

func oneUserObstacle(t *inventory.Transport, n *needs) *obstacle {
	if !t.Caps.OneUser {
		return nil
	}
	for _, e := range n.ports {
		if f := n.functions[e.end.Function]; f != nil && f.Runtime != chain.RuntimeProcess {
			return &obstacle{
				constraint: fmt.Sprintf("runtime %s of function %s", f.Runtime, f.Name),
				reason:     "joins only processes that run as the host's root",
				fix:        "use runtime: process, or another transport",
				pos:        at(f.FieldPos, "runtime", f.Pos),
			}
		}
	}
	return nil
}

func hugePagesObstacle(t *inventory.Transport, n *needs) *obstacle {
	if !t.Caps.HugePages {
		return nil
	}
	for _, e := range n.ports {
		if f := n.functions[e.end.Function]; f != nil && len(f.HugePages) == 0 && f.Runtime != chain.RuntimeExternal {
			return &obstacle{
				constraint: "huge pages of function " + f.Name,
				reason:     "needs DPDK applications with huge pages",
				fix:        "give the function hugepages, such as {2Mi: 256Mi}, or use another transport",
				pos:        f.Pos,
			}
		}
	}
	return nil
}

// driverObstacle refuses a dpdk port that the driver net_dray would open if the host is
// known to lack it.
func driverObstacle(t *inventory.Transport, n *needs) *obstacle {
	if n.driver == nil || n.driver.Usable() || !slices.Contains(t.Caps.Faces, string(chain.FaceNative)) {
		return nil
	}
	for _, e := range n.ports {
		if e.port.Face == chain.FaceDPDK && !n.inMachine(e) {
			return &obstacle{
				constraint: "face dpdk of " + e.end.String(),
				reason:     "needs the driver " + dpdk.NetDray + ", which " + n.driver.Unusable(),
				fix:        n.driver.Fix,
				pos:        at(e.port.FieldPos, "face", e.port.Pos),
			}
		}
	}
	return nil
}

func uplinkObstacle(t *inventory.Transport, n *needs) *obstacle {
	if len(n.uplinks) == 0 || t.Caps.Uplink {
		return nil
	}
	return &obstacle{
		constraint: "end " + n.uplinks[0].String(),
		reason:     "cannot join a host interface",
		fix:        "use a transport that takes an uplink",
		pos:        n.uplinks[0].Pos,
	}
}

func uplinksObstacle(_ *inventory.Transport, n *needs) *obstacle {
	if len(n.uplinks) <= 1 {
		return nil
	}
	return &obstacle{
		constraint: "end " + n.uplinks[1].String(),
		reason:     "joins at most one host interface",
		fix:        "keep one uplink per link",
		pos:        n.uplinks[1].Pos,
	}
}

func netnsObstacle(t *inventory.Transport, n *needs) *obstacle {
	if !t.Caps.SameNetns || n.sameFunction() && len(n.uplinks) == 0 {
		return nil
	}
	return &obstacle{
		constraint: "ends in one network namespace",
		reason:     "joins only ports of one function",
		fix:        "join two ports of one function, or use transport: auto",
		pos:        n.field("transport"),
	}
}

func endsObstacle(t *inventory.Transport, n *needs) *obstacle {
	o := obstacle{constraint: ports(len(n.ports)), pos: n.field("ends")}
	switch {
	case len(n.ports) < t.Caps.MinEnds:
		o.reason = "needs at least " + ports(t.Caps.MinEnds)
		o.fix = "add a port to the link"
	case t.Caps.MaxEnds > 0 && n.atOneSwitch(t) > t.Caps.MaxEnds:
		o.reason = "takes at most " + ports(t.Caps.MaxEnds)
		if t.Caps.Tunnel {
			o.reason += " on each host"
		}
		o.fix = "use fewer ends, or a transport with a switch"
		if t.Caps.MaxEnds > 2 {
			o.fix = "use several links, and a function that routes between them"
		}
	default:
		return nil
	}
	return &o
}

// atOneSwitch is how many of the link's ports are at one switch of the transport: all, or
// with a tunnel the most on one host.
func (n *needs) atOneSwitch(t *inventory.Transport) int {
	if !t.Caps.Tunnel {
		return len(n.ports)
	}
	most, on := 0, map[string]int{}
	for _, e := range n.ports {
		host := n.functions[e.end.Function].Host
		on[host]++
		most = max(most, on[host])
	}
	return most
}

func ports(n int) string {
	if n == 1 {
		return "1 port"
	}
	return fmt.Sprintf("%d ports", n)
}

func mtuObstacle(t *inventory.Transport, n *needs) *obstacle {
	if t.Caps.MaxMTU == 0 || n.mtu <= t.Caps.MaxMTU {
		return nil
	}
	return &obstacle{
		constraint: fmt.Sprintf("mtu %d", n.mtu),
		reason:     fmt.Sprintf("carries packets of at most %d bytes", t.Caps.MaxMTU),
		fix:        fmt.Sprintf("lower the ports' mtu to %d", t.Caps.MaxMTU),
		pos:        n.mtuPos,
	}
}

func messageObstacle(t *inventory.Transport, n *needs) *obstacle {
	m := n.link.Messages
	if m == nil || m.Size <= units.Bytes(t.Caps.MaxMessage) {
		return nil
	}
	o := &obstacle{
		constraint: fmt.Sprintf("messages of %v", m.Size),
		reason:     "carries packets only, no messages",
		fix:        "leave out messages, or join two native ports over shared memory",
		pos:        n.field("messages"),
	}
	if t.Caps.MaxMessage > 0 {
		o.reason = fmt.Sprintf("carries messages of at most %v", units.Bytes(t.Caps.MaxMessage))
		o.fix = fmt.Sprintf("lower the size to %v", units.Bytes(t.Caps.MaxMessage))
	}
	return o
}

func forwardingObstacle(t *inventory.Transport, n *needs) *obstacle {
	if n.link.Forwarding == "" || t.Caps.Forwards {
		return nil
	}
	return &obstacle{
		constraint: fmt.Sprintf("forwarding %s", n.link.Forwarding),
		reason:     "forwards in one way only",
		fix:        "leave out forwarding, or use a transport with Open vSwitch on DPDK or VPP",
		pos:        n.field("forwarding"),
	}
}

func statusObstacle(t *inventory.Transport, n *needs) *obstacle {
	if t.Usable() {
		return nil
	}
	return &obstacle{
		constraint: "transport " + t.Name,
		reason:     t.Unusable(),
		fix:        t.Fix,
		pos:        n.field("transport"),
	}
}

// vfsObstacle is for a transport that takes a VF for each port, all from one network
// card. VFs that other links of the chain take are not counted: the remaining number is
// known only when a link comes up.
func vfsObstacle(t *inventory.Transport, n *needs) *obstacle {
	if !t.Caps.VFs {
		return nil
	}
	card, most := "a network card", 0
	for _, i := range n.interfaces {
		named := len(n.uplinks) > 0
		if named && i.Name != n.uplinks[0].Uplink || !named && (!i.Up || i.MTU < n.mtu) {
			continue
		}
		if i.VFs >= len(n.ports) {
			return nil
		}
		most = max(most, i.VFs)
	}
	if len(n.uplinks) > 0 {
		card = n.uplinks[0].Uplink
	}
	return &obstacle{
		constraint: fmt.Sprintf("%d virtual functions of %s", len(n.ports), card),
		reason:     fmt.Sprintf("does not find a VF for each port: %d are free", most),
		fix:        fmt.Sprintf("list the VFs with ip link show, and set unused ones down; or, while none is in use, create %d through /sys/class/net/IFACE/device/sriov_numvfs", len(n.ports)),
		pos:        n.field("transport"),
	}
}

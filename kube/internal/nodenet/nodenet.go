// SPDX-License-Identifier: Apache-2.0

// Package nodenet makes the network side of a node's links: the half of each
// link that is on this node. A half is a network namespace of its own, with one end of a
// VXLAN tunnel if the link's other end is on another node. Applications get packet sockets
// there by the broker; no interface of the node is in reach of them. If a port of
// the link is an interface of a pod, the half also has a bridge, and each port
// of this node is a veth pair between that and the pod.
//
// The server also measures links between nodes and links of interfaces, by probes of its own.
//
// The server has the capabilities that this takes, and talks to nobody but
// dray-node, the broker, and by probes its peers. No packet passes through it. A keeper, another
// process, has each namespace open as well, so both halves of a link outlive
// the death of either.
package nodenet

import (
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/internal/probe"
)

// Device is the end of a half's tunnel.
const Device = "vxlan0"

// hub is the bridge of a half with ports.
const hub = "br0"

// PortDevice is the interface of a half on which the native port of an end of the link
// gets its packet sockets, if the half has ports.
func PortDevice(end int) string { return "port" + strconv.Itoa(end) }

// hubSide is the other end of a port's veth pair, at the bridge.
func hubSide(end int) string { return "end" + strconv.Itoa(end) }

// UDPPort is the port at which every node receives tunnels. It is neither
// flannel's (8472) nor Open vSwitch's (4789), so those can be on the node, too.
const UDPPort = 14789

// Overhead is what a tunnel adds to a packet, in bytes (RFC 7348, over IPv4).
const Overhead = chain.VXLANOverhead

// Half is this node's half of a link.
type Half struct {
	Name   string `json:"name"`             // of the link, unique on the node
	MTU    int    `json:"mtu"`              // of the ports, bytes of layer 3
	Tunnel Tunnel `json:"tunnel,omitempty"` // to the other node
	// MAC is that of the tunnel's end, which is the native port on this node. With ports,
	// the kernel chooses one.
	MAC chain.MAC `json:"mac,omitempty"`
	// Peer is the port on the other node; nil while it is unknown where that receives.
	Peer *Peer `json:"peer,omitempty"`
	// Ports are the link's ports on this node, joined by a bridge. None: the tunnel's end
	// itself is the port.
	Ports []Port `json:"ports,omitempty"`
}

// Tunnel says whether a half has the end of a tunnel.
type Tunnel string

// What is asked for about the tunnel of a half.
const (
	TunnelWanted Tunnel = "" // a half without ports always has one
	TunnelNone   Tunnel = "none"
	TunnelKept   Tunnel = "kept" // one that is there stays, because nobody knows where the other end is
)

// Port is a port of a half with a bridge.
type Port struct {
	End    int       `json:"end"` // of the link: 0 or 1
	MAC    chain.MAC `json:"mac"`
	Queues int       `json:"queues,omitempty"` // 0: the kernel's default
	// Shape is the egress qdisc of the port; nil: none.
	Shape *chain.Qdisc `json:"shape,omitempty"`
	// Interface is for a port that is an interface of a pod; nil: libdray opens the port.
	Interface *Interface `json:"interface,omitempty"`
}

// Interface is an interface in the network namespace of a pod.
type Interface struct {
	Name string       `json:"name"`
	IP   netip.Prefix `json:"ip,omitzero"`
	// Netns is the pod's network namespace, a file below the server's directory of
	// namespaces. "": it is not known; then an interface that is there stays.
	Netns string `json:"netns,omitempty"`
	// Opposite is the port at the link's other end if libdray opens that; else nil.
	Opposite *Neighbour `json:"opposite,omitempty"`
}

// Neighbour is a port for which no kernel answers.
type Neighbour struct {
	IP   netip.Addr `json:"ip,omitzero"`
	MAC  chain.MAC  `json:"mac"`
	DPDK bool       `json:"dpdk,omitempty"` // a DPDK application has it
}

// Peer is the port at the other end of a link.
type Peer struct {
	MAC  chain.MAC  `json:"mac"`
	Addr netip.Addr `json:"addr"` // of its node
	VNI  int        `json:"vni"`  // at which its node receives the link
}

func (p *Peer) end() host.TunnelEnd { return host.TunnelEnd{Addr: p.Addr, VNI: p.VNI} }

// Info is what a node offers.
type Info struct {
	Addr netip.Addr `json:"addr"` // at which it receives tunnels
	MTU  int        `json:"mtu"`  // of the network between nodes
	// Shapes says that ports can have a token bucket.
	Shapes bool `json:"shapes,omitempty"`
}

// Made is a half as it is now.
type Made struct {
	Name  string `json:"name"`
	VNI   int    `json:"vni"`             // at which this node receives the link; 0: it has no tunnel
	Error string `json:"error,omitempty"` // why it could not be made
	// Faults are why ports of it could not be made, by end.
	Faults map[int]string `json:"faults,omitempty"`
	// Wrong is what of a port is not as it was made, by end. The port is left as it is.
	Wrong map[int]string `json:"wrong,omitempty"`
	// Again is what was wrong with a port that has been made again, by end.
	Again map[int]string `json:"again,omitempty"`
}

// Measured is what was measured at a port.
type Measured struct {
	// Epoch changes if the measurement begins again. Intervals are then numbered again.
	Epoch     uint64           `json:"epoch"`
	Intervals []probe.Interval `json:"intervals"`
}

// The sockets below the server's directory.
func controlSocket(dir string) string { return filepath.Join(dir, "control.sock") }
func keeperSocket(dir string) string  { return filepath.Join(dir, "keeper.sock") }

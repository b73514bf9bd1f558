// SPDX-License-Identifier: Apache-2.0

// Package nodeswitch is how dray-node asks for links at the switch of its node: Open vSwitch
// with DPDK. The switch serves vhost-user ports of pods, and carries links to other nodes.
package nodeswitch

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/drayage/dray/internal/spec/chain"
)

// Overhead is what a tunnel adds to a packet, in bytes (RFC 7348, over IPv4).
const Overhead = chain.VXLANOverhead

// MaxMTU is the longest packet of layer 3 that a port carries. A tunnel's is bounded by its network, too.
const MaxMTU = 9000

// MaxLinks bounds the links of a node: each is a bridge, with ports that are polled.
const MaxLinks = 64

// Link is this node's part of a link.
type Link struct {
	Name string `json:"name"` // unique on the node
	MTU  int    `json:"mtu"`  // of the ports, bytes of layer 3
	// Learning forwards by learned addresses. Without it, what enters at one port leaves at the other.
	Learning bool   `json:"learning,omitempty"`
	Ports    []Port `json:"ports"` // of this node: one or two
	// Tunnel says that the other end is on another node, or will be.
	Tunnel bool  `json:"tunnel,omitempty"`
	Peer   *Peer `json:"peer,omitempty"` // where that receives; nil: not known yet
}

// Port is a vhost-user port of a DPDK application.
type Port struct {
	End    int       `json:"end"`              // of the link: 0 or 1
	MAC    chain.MAC `json:"mac"`              // of the application's device
	Queues int       `json:"queues,omitempty"` // in each direction; 0: one
	// Door is the broker's socket at which the switch is shown the application's socket (package meet).
	Door string `json:"door"`
}

// Peer is the switch at the other end of a tunnel.
type Peer struct {
	Addr netip.Addr `json:"addr"`
	VNI  int        `json:"vni"` // at which it receives the link
}

// Info is what a switch offers.
type Info struct {
	Addr    netip.Addr `json:"addr"`    // at which it receives tunnels
	MTU     int        `json:"mtu"`     // of the network between switches, before encapsulation
	Version string     `json:"version"` // "3.1.0, DPDK 22.11.11"
}

// Made is a link as it is now.
type Made struct {
	Name  string `json:"name"`
	VNI   int    `json:"vni,omitempty"`   // at which this switch receives the link; 0: it has no tunnel
	Error string `json:"error,omitempty"` // why it could not be made
	// Faults are what is wrong with ports of it, by end. A port whose application does not run yet,
	// or not any more, has none: it forwards as soon as that runs.
	Faults map[int]string `json:"faults,omitempty"`
}

// DoorOf is where the broker listens for the switch, for an end of a link. The name of the link may
// be longer than the path of a socket.
func DoorOf(dir, link string, end int) string {
	sum := sha256.Sum256([]byte(link))
	return filepath.Join(dir, "door-"+hex.EncodeToString(sum[:8])+"-"+strconv.Itoa(end))
}

// ControlSocket is where the switch of a directory is asked.
func ControlSocket(dir string) string { return filepath.Join(dir, "control.sock") }

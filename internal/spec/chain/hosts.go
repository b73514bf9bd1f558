// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Hosts are the simulated hosts of a chain: each is a network namespace of the
// one machine that runs the chain, and all are joined by one underlay.
type Hosts struct {
	Names    []string `json:"names"` // at least two
	Underlay Underlay `json:"underlay"`

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields that the file gives
}

// Underlay is the network between simulated hosts: a switch, to which each of
// them has one line.
type Underlay struct {
	Rate  units.Bitrate  `json:"rate,omitempty"`  // of each host's line, in each direction; 0: what the machine gives
	Delay units.Duration `json:"delay,omitempty"` // from one host to another, one way, beside what the machine takes
	MTU   int            `json:"mtu"`             // bytes of L3 packet, tunnel headers included; default 1600

	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields that the file gives
}

// MaxHosts is the most simulated hosts of a chain: each has as many of the
// underlay's addresses as the links of a chain may need.
const MaxHosts = 16

// VXLANOverhead is what a tunnel adds to a packet on an underlay of IPv4, in
// bytes: outer IPv4, UDP, VXLAN and the inner Ethernet header (RFC 7348).
const VXLANOverhead = 20 + 8 + 8 + 14

// defaultUnderlayMTU carries an IP packet of 1500 bytes in GTP-U, and that in a
// tunnel.
const defaultUnderlayMTU = 1600

// Simulated returns the names of the simulated hosts that a link's ports are on,
// in the order of its ends; none if the chain has no such hosts.
func (c *Chain) Simulated(l *Link) []string {
	var names []string
	for _, e := range l.Ends {
		if f := c.Function(e.Function); f != nil && f.Host != "" && !slices.Contains(names, f.Host) {
			names = append(names, f.Host)
		}
	}
	return names
}

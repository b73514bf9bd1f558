// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Hosts are the simulated hosts of a chain. Each is a network namespace of the one
// machine that runs the chain; an underlay or lines join them. More than MaxHosts, with
// Lines, are not simulated: their chain can only be planned.
type Hosts struct {
	Names    []string `json:"names"` // at least two
	Underlay Underlay `json:"underlay"`
	// Machines are the resources of the hosts, in the order of Names; nil: not known, and
	// each function names its host.
	Machines []Machine `json:"machines,omitempty"`
	// Lines join the hosts in place of the underlay's switch. The underlay is only its MTU
	// then, that of each line.
	Lines []HostLine `json:"lines,omitempty"`

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// Underlay is the network between simulated hosts: a switch, with one line to each
// host.
type Underlay struct {
	Rate  units.Bitrate  `json:"rate,omitempty"`  // of each host's line, in each direction; 0: unlimited by Drayage
	Delay units.Duration `json:"delay,omitempty"` // host to host, one way, in addition to the machine's own
	MTU   int            `json:"mtu"`             // bytes of L3 packet, tunnel headers included; default 1600

	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// MaxHosts is the maximum number of simulated hosts of a chain: each has as many
// underlay addresses as the links of a chain may need.
const MaxHosts = 16

// VXLANOverhead is what a tunnel adds to a packet on an IPv4 underlay, in bytes: outer
// IPv4, UDP, VXLAN and inner Ethernet header (RFC 7348).
const VXLANOverhead = 20 + 8 + 8 + 14

// defaultUnderlayMTU carries a 1500-byte IP packet in GTP-U in a tunnel.
const defaultUnderlayMTU = 1600

// Simulated returns the simulated hosts of a link's ports, in the order of its ends;
// none if the chain has no such hosts.
func (c *Chain) Simulated(l *Link) []string {
	var names []string
	for _, e := range l.Ends {
		if f := c.Function(e.Function); f != nil && f.Host != "" && !slices.Contains(names, f.Host) {
			names = append(names, f.Host)
		}
	}
	return names
}

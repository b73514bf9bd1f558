// SPDX-License-Identifier: Apache-2.0

// Package plan decides where each function runs, on which CPUs, and which transport
// realises each link, or names the unmet constraint. It is pure: it has no clock and no
// file system.
package plan

import (
	"net/netip"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Plan is the decision for one chain on one inventory.
type Plan struct {
	Chain     string     `json:"chain"`
	Host      string     `json:"host"`
	Functions []Function `json:"functions"`
	// Hosts are simulated on Host; nil: there are none.
	Hosts *chain.Hosts `json:"hosts,omitempty"`
	// Placement is how the functions were put on Hosts with resources; nil: there are
	// none, or no placement was found.
	Placement *Placement `json:"placement,omitempty"`
	Links     []Link     `json:"links"`
	Paths     []Path     `json:"paths,omitempty"`
	// Violations is what cannot be met. It is empty in a feasible plan, unless the
	// policy is to warn and none is Hard.
	Violations []Violation `json:"violations"`
	// Unsimulated is what this machine lacks to simulate hosts with lines. The plan holds
	// without it, but the chain cannot be brought up.
	Unsimulated []Violation `json:"unsimulated,omitempty"`
	Warnings    []string    `json:"warnings"`
}

// Function is a placed function.
type Function struct {
	Name    string            `json:"name"`
	Runtime chain.RuntimeName `json:"runtime"`
	Host    string            `json:"host"`
	On      string            `json:"on,omitempty"` // the simulated host
	CPUs    []int             `json:"cpus"`         // of Host; nil: any
	Compute *chain.Compute    `json:"compute,omitempty"`
	Reason  string            `json:"reason"`
	// Alternatives are the other hosts, if they were asked for (Explain).
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// Alternative is a host on which a function was not placed.
type Alternative struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// Link is a link with its transport.
type Link struct {
	Name      string        `json:"name"`
	Transport string        `json:"transport"` // empty if none is feasible
	Reason    string        `json:"reason"`
	Rejected  []Rejected    `json:"rejected"`
	Ends      []End         `json:"ends"`
	CPUs      []int         `json:"cpus,omitempty"` // for polling processes of the transport; nil: any
	MTU       int           `json:"mtu"`
	Traffic   chain.Traffic `json:"traffic"`         // of bitrate measurements
	Frame     int           `json:"frame,omitempty"` // bytes of UDP frames with FCS; 0: frames that fill the MTU
	Load      units.Bitrate `json:"load"`            // traffic while latency is measured
	// Slotted is what that traffic is; none: datagrams.
	chain.Slotted
	Shape     *chain.Qdisc    `json:"shape,omitempty"` // egress qdisc of ports without their own: qos, or a tbf for max_bitrate
	Messages  *chain.Messages `json:"messages,omitempty"`
	Evidence  []Evidence      `json:"evidence"`
	Requires  chain.Requires  `json:"requires"`
	Isolation chain.Isolation `json:"isolation"`
	// Forwarding is set if the transport has a choice.
	Forwarding chain.Forwarding `json:"forwarding,omitempty"`
	// Hosts are the simulated hosts that a tunnel joins, and VNI is its number;
	// none for a link on one host.
	Hosts []string `json:"hosts,omitempty"`
	VNI   int      `json:"vni,omitempty"`

	// Course is set if the link stands for a path; a plan's own links have none.
	Course *Course `json:"-"`
}

// Course is what a path has that a link has not.
type Course struct {
	Through []string // the functions between its ends, in order
	Forward bool     // judged only from the first end to the second
	// Next are the ports that take the packets of the first end, and of the second.
	Next [2]End
	GTPU *chain.GTPU // tunnels at one of the ends; nil: none
}

// LoadText is the traffic while latency is measured: "400Mbps", or that of a load in slots.
func (l Link) LoadText() string {
	if load := l.SlotLoad(); load != nil {
		return load.Field() + ", " + l.Load.String()
	}
	return l.Load.String()
}

// Limits are what is required of a link. They can change without the link being made again.
type Limits struct {
	Traffic chain.Traffic `json:"traffic"`
	Load    units.Bitrate `json:"load"`
	chain.Slotted
	Evidence []Evidence     `json:"evidence"`
	Requires chain.Requires `json:"requires"`
}

// Limits are those of the link.
func (l Link) Limits() Limits { return Limits{l.Traffic, l.Load, l.Slotted, l.Evidence, l.Requires} }

// With is the link with other limits.
func (l Link) With(m Limits) Link {
	l.Traffic, l.Load, l.Slotted, l.Evidence, l.Requires = m.Traffic, m.Load, m.Slotted, m.Evidence, m.Requires
	return l
}

// Way is the transport and, if it has a choice, how it forwards; empty if no transport
// is feasible.
func (l Link) Way() string {
	if l.Forwarding == "" {
		return l.Transport
	}
	return l.Transport + ", " + string(l.Forwarding)
}

// Tunnel reports whether the link joins simulated hosts.
func (l Link) Tunnel() bool { return len(l.Hosts) > 1 }

// End is a link end with all its addresses assigned.
type End struct {
	Function string       `json:"function,omitempty"`
	Port     string       `json:"port,omitempty"` // also the interface's name
	Uplink   string       `json:"uplink,omitempty"`
	Face     chain.Face   `json:"face,omitempty"`
	IP       netip.Prefix `json:"ip,omitempty"`
	MAC      chain.MAC    `json:"mac,omitempty"`
	MTU      int          `json:"mtu,omitempty"`
	Queues   int          `json:"queues,omitempty"`
	// Backend is set for a port that libdray opens, in an application or in a DPDK
	// driver; otherwise empty.
	Backend Backend     `json:"backend,omitempty"`
	Hold    *chain.Hold `json:"hold,omitempty"`
	// Shape is the port's own egress qdisc; nil: the link's.
	Shape *chain.Qdisc `json:"shape,omitempty"`
}

// Backend is what moves the packets of a port that libdray opens.
type Backend string

const (
	BackendShm    Backend = "shm"    // memory shared by the two ends of the link
	BackendNetdev Backend = "netdev" // packet sockets on an interface of the link, hidden from the function
)

// Brokered reports whether libdray opens the port, in the function's own program or in
// its DPDK driver.
func (e End) Brokered() bool {
	return e.Face == chain.FaceNative || e.Face == chain.FaceDPDK && e.Backend != ""
}

// String is "function.port" or "uplink:interface".
func (e End) String() string {
	return chain.End{Function: e.Function, Port: e.Port, Uplink: e.Uplink}.String()
}

// Rejected is an alternative not taken, with the reason.
type Rejected struct {
	Transport string `json:"transport"`
	Reason    string `json:"reason"`
}

// Evidence is why a requirement is expected to be met.
type Evidence struct {
	Requirement string `json:"requirement"` // field name in the chain file
	Required    string `json:"required"`    // with unit
	Expected    string `json:"expected"`    // with unit
	Source      string `json:"source"`      // calibration record, or "stated default"
	Meets       bool   `json:"meets"`
}

// Violation is a constraint that cannot be met.
type Violation struct {
	Subject    string         `json:"subject"`    // "link f1u", "function du"
	Constraint string         `json:"constraint"` // e.g. "latency ≤ 25µs at p99.99"
	Reason     string         `json:"reason"`
	Fix        string         `json:"fix,omitempty"`
	Pos        parse.Position `json:"-"`
	Position   string         `json:"position,omitempty"` // Pos as text
	// Hard violations cannot become warnings: the link cannot be built.
	Hard bool `json:"hard"`
}

// ClaimedCPUs are the CPUs reserved for the chain: those of pinned functions and those
// on which a link's processes poll.
func (p *Plan) ClaimedCPUs() []int {
	var all []int
	for _, f := range p.Functions {
		all = append(all, f.CPUs...)
	}
	for _, l := range p.Links {
		all = append(all, l.CPUs...)
	}
	return all
}

// Link returns the planned link of that name, or nil.
func (p *Plan) Link(name string) *Link {
	for i := range p.Links {
		if p.Links[i].Name == name {
			return &p.Links[i]
		}
	}
	return nil
}

// Function returns the placed function of that name, or nil.
func (p *Plan) Function(name string) *Function {
	for i := range p.Functions {
		if p.Functions[i].Name == name {
			return &p.Functions[i]
		}
	}
	return nil
}

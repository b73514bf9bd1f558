// SPDX-License-Identifier: Apache-2.0

// Package broker owns the port names of one chain. It creates the memory of
// each link, hands it to both ends and watches them. It creates the next
// generation when an end dies or the link moves (dataplane/port/PROTOCOL.md).
// The broker is not on the data path: traffic continues without it, and a
// restarted broker adopts live links.
package broker

import (
	"io"
	"net"
	"net/netip"
)

// Kinds of a link.
const (
	KindShm    = "shm"    // both ends share memory
	KindNetdev = "netdev" // each end gets packet sockets on an interface
)

// Page sizes that a link may request for its memory.
const (
	PagesAuto  = "auto"  // huge pages if there are enough and they are worth it, else plain ones
	PagesHuge  = "huge"  // 2 MiB pages of the kernel's pool; without them, no link
	PagesPlain = "plain" // 4 KiB pages
)

// Handling of packets beyond HoldQuota.
const (
	HoldDrop = "drop" // returned to their sender immediately, and counted
	HoldCopy = "copy" // delivered in private memory
)

// Values of Link.SampleShift in addition to 1 to 20.
const (
	SampleDefault = 0          // one packet in 64
	SampleEvery   = 0xfffffffe // every packet
	SampleNone    = 0xffffffff // none
)

// Link is the requested configuration of a link.
type Link struct {
	Name         string `json:"name"`
	Kind         string `json:"kind"`          // KindShm, KindNetdev
	Ends         []End  `json:"ends"`          // shm: two; netdev: one or two
	PacketBytes  int    `json:"packet_bytes"`  // largest frame, from the Ethernet header on; 0: the larger MTU + 18
	Slots        int    `json:"slots"`         // packets in flight per queue and direction, 32 to 65536; 0: 512
	MessageBytes int    `json:"message_bytes"` // largest message; 0: the link has no message buffers
	Messages     int    `json:"messages"`      // in flight per queue and direction; 0: 8, if there are message buffers
	SampleShift  uint32 `json:"sample_shift"`  // one packet in 2^shift is stamped, 1 to 20; SampleDefault, SampleEvery, SampleNone
	Pages        string `json:"pages"`         // PagesPlain (also ""), PagesAuto, PagesHuge
	// Machine says that an end is in a virtual machine, which has the memory as a PCI
	// device: it takes a power of two bytes, at most MachineMax, of plain pages.
	Machine bool `json:"machine,omitempty"`
	// Node is the NUMA node from which a link of shared memory prefers its memory; nil: any.
	Node *int `json:"node,omitempty"`
}

// MachineMax is the most memory of a link with an end in a virtual machine, in bytes.
const MachineMax = 256 << 20

// End is one port of a link. At least one of a link is on this host.
type End struct {
	Function   string           `json:"function"`
	Port       string           `json:"port"`   // 1 to 15 of a-z A-Z 0-9 . _ -, the name that the application opens
	Socket     string           `json:"socket"` // path that the broker binds, mode 0600; its directory must exist; "": the port is on another host
	Owner      int              `json:"owner"`  // uid that may connect
	MAC        net.HardwareAddr `json:"mac"`
	IP         netip.Prefix     `json:"ip"`          // the zero Prefix: no address
	MTU        int              `json:"mtu"`         // layer 3, 68 to 65535
	Queues     int              `json:"queues"`      // 1 to 16; 0: 1
	HoldQuota  uint32           `json:"hold_quota"`  // peer slots that this end may hold per queue; 0: all
	HoldPolicy string           `json:"hold_policy"` // HoldDrop (also ""), HoldCopy

	// Classes are how the port queues what it sends; nil: it does not. Such a port has one
	// queue, and the end's library must know them.
	Classes *Classes `json:"classes,omitempty"`

	// For KindNetdev: the interface behind the port, and the file of its
	// network namespace, or what Options.Sockets takes for it; "" is the broker's own.
	Netns     string `json:"netns,omitempty"`
	Interface string `json:"interface,omitempty"`
}

// here reports whether the port is on this host. A link of shared memory waits
// for a port that is not; Relink says when it comes or goes.
func (e *End) here() bool { return e.Socket != "" }

// Options of Serve.
type Options struct {
	Dir   string    // the broker's state: journal and control socket; created with mode 0700 if missing
	Log   io.Writer // nil: no log
	Ready func()    // called once the control socket and the journalled links listen; may be nil
	// Sockets opens the packet sockets of an end of a KindNetdev link, one per queue;
	// nil: PacketSockets. With it, a broker needs no privilege in any namespace.
	Sockets func(e *End, queues int) ([]int, error)

	timeouts timeouts // zero: usual
}

// States of a link, named as in PROTOCOL.md.
const (
	StateEmpty   = "empty"   // no end is connected
	StateHalf    = "half"    // one end is connected
	StateOffered = "offered" // both are connected and set up the next generation
	StateActive  = "active"  // traffic can pass
)

// LinkStatus is the state of a link.
type LinkStatus struct {
	Name       string      `json:"name"`
	Kind       string      `json:"kind"`
	State      string      `json:"state"`
	Generation uint32      `json:"generation"` // the newest; 0: none yet
	Adopted    bool        `json:"adopted"`    // created by an earlier broker
	Pages      string      `json:"pages"`      // what the memory consists of: "huge 2M", "thp" (advised), "plain"; "" if there is none
	Bytes      uint64      `json:"bytes"`      // memory size: data and telemetry
	Rebinds    uint64      `json:"rebinds"`    // generations ended since this broker started; a netdev link counts each end
	LastError  string      `json:"last_error"` // why the latest failed generation failed
	Late       bool        `json:"late"`       // the link is busy, for example creating gigabytes of memory; all other fields are its last answer
	Ends       []EndStatus `json:"ends"`
}

// EndStatus is the state of one end. The function reports all fields from Mode
// on, and may report anything.
type EndStatus struct {
	Function  string `json:"function"`
	Port      string `json:"port"`
	Connected bool   `json:"connected"`
	Active    bool   `json:"active"`  // live on the link's newest generation
	PID       int    `json:"pid"`     // process that opened the port, in the broker's PID namespace; 0 if it is not connected
	Refused   uint64 `json:"refused"` // rejected connections: the port was already open, or a message was out of order

	Mode       string            `json:"mode"`       // "busy", "adaptive", "sleeping"
	Queues     int               `json:"queues"`     // most queues that the application uses
	Generation uint32            `json:"generation"` // the generation it is live on; 0: none
	Answers    bool              `json:"answers"`    // false: it has not replied to a STATS request for over a second
	Counters   Counters          `json:"counters"`
	Violations map[string]uint64 `json:"violations"`        // by kind (PROTOCOL.md, section 7); nonzero counts only
	Latency    Latency           `json:"latency"`           // one way, to this end
	Depth      uint64            `json:"depth"`             // packets waiting when it last looked, all queues
	Classes    *ClassesStatus    `json:"classes,omitempty"` // nil: the port has no traffic classes
}

// Counters are the STATS counters, summed over queues, since the port was opened.
type Counters struct {
	TxPackets  uint64 `json:"tx_packets"`
	TxBytes    uint64 `json:"tx_bytes"`
	RxPackets  uint64 `json:"rx_packets"`
	RxBytes    uint64 `json:"rx_bytes"`
	TxNoBuffer uint64 `json:"tx_no_buffer"`
	TxDropped  uint64 `json:"tx_dropped"`
	TxCopied   uint64 `json:"tx_copied"`
	RxDropped  uint64 `json:"rx_dropped"`
	RxCopied   uint64 `json:"rx_copied"`
	Misuse     uint64 `json:"misuse"`
}

// Latency is a histogram of sampled packets, in ascending order.
type Latency struct {
	Count   uint64   `json:"count"`
	Buckets []Bucket `json:"buckets,omitempty"` // nonempty buckets only
}

// Bucket counts values in [Low, High) nanoseconds. The tick-rate estimate
// improves over time and shifts both bounds, so Index identifies the bucket.
type Bucket struct {
	Index int     `json:"index"` // PROTOCOL.md, section 9
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Count uint64  `json:"count"`
}

// Quantile returns the bucket that holds quantile q, 0 to 1: the value is in
// [low, high) nanoseconds. Both are 0 if nothing was measured.
func (l Latency) Quantile(q float64) (low, high float64) {
	rank, seen := q*float64(l.Count), uint64(0)
	for _, b := range l.Buckets {
		seen += b.Count
		low, high = b.Low, b.High
		if float64(seen) >= rank {
			break
		}
	}
	return low, high
}

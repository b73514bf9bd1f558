// SPDX-License-Identifier: Apache-2.0

// Package broker owns the port names of one chain: it makes the memory of each
// link, hands it to the two ends, watches them, and makes the next generation
// when one dies or the link moves (dataplane/port/PROTOCOL.md). It is not on the
// data path: traffic goes on without it, and a broker that restarts adopts what
// is live.
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

// Pages that the memory of a link may be asked to have.
const (
	PagesAuto  = "auto"  // huge pages if there are enough and they are worth it, else plain ones
	PagesHuge  = "huge"  // 2 MiB pages of the kernel's pool, or no link
	PagesPlain = "plain" // 4 KiB pages
)

// What is done with packets beyond HoldQuota.
const (
	HoldDrop = "drop" // returned to their sender at once, and counted
	HoldCopy = "copy" // delivered in private memory
)

// Values of Link.SampleShift beside 1 to 20.
const (
	SampleDefault = 0          // one packet in 64
	SampleEvery   = 0xfffffffe // every packet
	SampleNone    = 0xffffffff // none
)

// Link is what the broker is told of a link.
type Link struct {
	Name         string `json:"name"`
	Kind         string `json:"kind"`          // KindShm, KindNetdev
	Ends         []End  `json:"ends"`          // shm: two; netdev: one or two
	PacketBytes  int    `json:"packet_bytes"`  // of the largest frame, from the Ethernet header on; 0: the larger MTU and 18
	Slots        int    `json:"slots"`         // packets under way per queue and direction, 32 to 65536; 0: 512
	MessageBytes int    `json:"message_bytes"` // of the largest message; 0: the link has no message buffers
	Messages     int    `json:"messages"`      // under way per queue and direction; 0: 8, if there are message buffers
	SampleShift  uint32 `json:"sample_shift"`  // one packet in 2^shift is stamped, 1 to 20; SampleDefault, SampleEvery, SampleNone
	Pages        string `json:"pages"`         // PagesAuto (also ""), PagesHuge, PagesPlain
}

// End is one port of a link.
type End struct {
	Function   string           `json:"function"`
	Port       string           `json:"port"`   // 1 to 15 of a-z A-Z 0-9 . _ -, as the application opens it
	Socket     string           `json:"socket"` // path that the broker binds, mode 0600; its directory is there already
	Owner      int              `json:"owner"`  // uid that may connect
	MAC        net.HardwareAddr `json:"mac"`
	IP         netip.Prefix     `json:"ip"`          // the zero Prefix: no address
	MTU        int              `json:"mtu"`         // of layer 3, 68 to 65535
	Queues     int              `json:"queues"`      // 1 to 16; 0: 1
	HoldQuota  uint32           `json:"hold_quota"`  // slots of the peer that this end may hold per queue; 0: all
	HoldPolicy string           `json:"hold_policy"` // HoldDrop (also ""), HoldCopy

	// For KindNetdev: the interface behind the port, and the file that names
	// its network namespace; "" is the broker's own.
	Netns     string `json:"netns,omitempty"`
	Interface string `json:"interface,omitempty"`
}

// Options of Serve.
type Options struct {
	Dir   string    // the broker's state: journal and control socket; made with mode 0700 if it is missing
	Log   io.Writer // nil: no log
	Ready func()    // called once the control socket listens and the journalled links do; may be nil
}

// States of a link, as PROTOCOL.md names them.
const (
	StateEmpty   = "empty"   // no end is connected
	StateHalf    = "half"    // one is
	StateOffered = "offered" // both are, and are setting the next generation up
	StateActive  = "active"  // traffic can pass
)

// LinkStatus is how a link is.
type LinkStatus struct {
	Name       string      `json:"name"`
	Kind       string      `json:"kind"`
	State      string      `json:"state"`
	Generation uint32      `json:"generation"` // the newest; 0: none yet
	Adopted    bool        `json:"adopted"`    // a broker before this one made it
	Pages      string      `json:"pages"`      // what the memory is really made of: "huge 2M", "thp" (advised), "plain"; "" if there is none
	Bytes      uint64      `json:"bytes"`      // of memory: data and telemetry
	Rebinds    uint64      `json:"rebinds"`    // generations that have ended since this broker started; of a netdev link, each end's
	LastError  string      `json:"last_error"` // why the latest generation that failed did
	Late       bool        `json:"late"`       // it is busy, with gigabytes of memory, say: all else is how it was when it last answered
	Ends       []EndStatus `json:"ends"`
}

// EndStatus is how one end is. From Mode on it is reported by the function, which
// may report what it likes.
type EndStatus struct {
	Function  string `json:"function"`
	Port      string `json:"port"`
	Connected bool   `json:"connected"`
	Active    bool   `json:"active"`  // live on the link's newest generation
	PID       int    `json:"pid"`     // that opened the port, in the broker's PID namespace; 0 if it is not connected
	Refused   uint64 `json:"refused"` // connections turned away: the port was open, or spoke out of turn

	Mode       string            `json:"mode"`       // "busy", "adaptive", "sleeping"
	Queues     int               `json:"queues"`     // that the application uses at most
	Generation uint32            `json:"generation"` // that it is live on; 0: none
	Answers    bool              `json:"answers"`    // false: it was asked for figures over a second ago and has not replied
	Counters   Counters          `json:"counters"`
	Violations map[string]uint64 `json:"violations"` // by kind (PROTOCOL.md, section 7); only those that occurred
	Latency    Latency           `json:"latency"`    // one way, to this end
	Depth      uint64            `json:"depth"`      // packets that waited when it last looked, all queues
}

// Counters are those of STATS, all queues together, since the port was opened.
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
	Buckets []Bucket `json:"buckets,omitempty"` // those that are not empty
}

// Bucket counts values in [Low, High) nanoseconds. The function's clock is known
// better from one moment to the next, so that a bucket is known by its Index.
type Bucket struct {
	Index int     `json:"index"` // PROTOCOL.md, section 9
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Count uint64  `json:"count"`
}

// Quantile is the bucket that holds quantile q, 0 to 1: the value lies in
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

// SPDX-License-Identifier: Apache-2.0

// Package probe measures a link between two nodes from both of its halves. Each half sends
// small frames, probes, between the applications' packets. The kernel of each node stamps
// them on its own clock and notes how many packets of applications had passed. A
// probe also carries the latest stamps of its half, so each half knows both sides of
// every probe.
//
// The clocks of two nodes differ by an unknown amount. The least differences of both directions
// bound it, because no delay is negative. So every delay is known between two bounds,
// and no clock is trusted for more than its rate. Two ports of one node have one clock, so
// their delays are known.
//
// Nothing in a probe is trusted: the other node and the pods of the link can send anything.
// They can make this link's figures wrong, and nothing else.
package probe

import (
	"math"
	"time"
)

// Every is the interval at which a half sends probes: in two minutes there are enough to judge a
// percentile of 99.9.
const Every = 25 * time.Millisecond

// intervalNS is the length of an interval, in ns; keepIntervals is how many are kept.
const (
	intervalNS    = uint64(2 * time.Second)
	keepIntervals = 60
)

// driftPPM bounds how fast the clocks of two nodes drift apart, in parts of a million:
// oscillators differ by at most 200, and NTP corrects more slowly than the rest.
const driftPPM = 500

// drift is by how much two clocks may have drifted apart in so many ns.
func drift(ns uint64) int64 { return int64(ns/1e6*driftPPM + ns%1e6*driftPPM/1e6) }

// maxNS and maxCount bound what a stamp may say, so that no sum overflows: 73 years, and a
// packet every nanosecond for as many.
const maxNS, maxCount = uint64(math.MaxInt64 / 4), uint64(math.MaxInt64 / 4)

// Stamp is what a kernel noted when a probe passed.
type Stamp struct {
	Seq   uint32
	NS    uint64 // on the clock of its node
	Count uint64 // packets of applications that had passed in this direction
	Bytes uint64 // likewise
}

func (s Stamp) plausible() bool {
	return s.Seq > 0 && s.NS <= maxNS && s.Count <= maxCount && s.Bytes <= maxCount
}

// Interval is what was measured of a link in two seconds.
type Interval struct {
	Number   uint64        `json:"number"`
	Duration time.Duration `json:"duration"`
	Out      Direction     `json:"out"` // to the other node
	In       Direction     `json:"in"`  // from the other node
	// Rounds are delays of both directions together, each of an own probe and the one of the other node
	// that is next to it, in ns. They need no common clock.
	Rounds []int64 `json:"rounds,omitempty"`
	// Clock are the bounds of how far the other node's clock is ahead, in ns; nil: unknown. They are
	// equal if both ports are on this node.
	Clock *[2]int64 `json:"clock,omitempty"`
}

// Direction is one direction of a link in an interval.
type Direction struct {
	Probes uint64 `json:"probes"` // as far as their fate is known
	Lost   uint64 `json:"lost"`   // of Probes
	// Delays are those of the other probes; empty if the clocks are not known.
	Delays []Delay `json:"delays,omitempty"`
	// Full is how many of Probes were as large as the MTU allows, and FullLost how many of Lost.
	Full     uint64 `json:"full"`
	FullLost uint64 `json:"fullLost"`
	// Sent and Missing count packets of applications, and Bytes what came of them.
	Sent    uint64 `json:"sent"`
	Missing uint64 `json:"missing"`
	Bytes   uint64 `json:"bytes"`
}

// Delay is the one-way delay of a probe, in ns: at least its first value, at most its second. The
// third is by how much it exceeds the least of its interval, whatever the clocks.
type Delay [3]int64

// Low and High are the bounds of the delay; Above is what it exceeds the least by.
func (d Delay) Low() int64   { return d[0] }
func (d Delay) High() int64  { return d[1] }
func (d Delay) Above() int64 { return d[2] }

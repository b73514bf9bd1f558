// SPDX-License-Identifier: Apache-2.0

// Package telemetry reads the counters and latencies that functions report for
// their native ports through the broker, as flows between two snapshots. It
// measures nothing: the figures are as honest as the functions.
package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/drayage/dray/internal/link/broker"
)

// Snapshot is the status of one chain's broker at one time.
type Snapshot struct {
	At    time.Time
	Chain string
	Links []broker.LinkStatus
}

// Flow is a link's traffic in one direction, over an interval or since the
// ports were opened, as reported by the two functions.
type Flow struct {
	Link     string        `json:"link"`
	From     string        `json:"from"`     // "function.port"
	To       string        `json:"to"`       // "function.port"
	Interval time.Duration `json:"interval"` // ns; 0: since the ports were opened
	Sent     uint64        `json:"sent"`     // packets, by From
	Received uint64        `json:"received"` // packets, by To
	Bytes    uint64        `json:"bytes"`    // received by To
	// Lost counts packets that From could not send (no peer, or too long), which are
	// Unsent. It also counts packets that To dropped beyond its quota, which are in Sent.
	Lost   uint64 `json:"lost"`
	Unsent uint64 `json:"unsent"`
	// NoBuffer counts buffers that From requested while To held them all.
	NoBuffer uint64 `json:"no_buffer"`
	// Violations counts From's violations as seen by To, and the reverse.
	Violations uint64 `json:"violations"`
	// Latency is the one-way latency of stamped packets.
	Latency broker.Latency `json:"latency"`
	// Waiting is how many packets waited when To last polled.
	Waiting uint64 `json:"waiting"`
}

// PacketRate is packets received per second; 0 for a flow without interval.
func (f Flow) PacketRate() float64 { return f.perSecond(f.Received) }

// Bitrate is bits received per second, from the Ethernet header on; 0 for a
// flow without interval.
func (f Flow) Bitrate() float64 { return f.perSecond(8 * f.Bytes) }

func (f Flow) perSecond(n uint64) float64 {
	if f.Interval <= 0 {
		return 0
	}
	return float64(n) / f.Interval.Seconds()
}

// Total is each flow since the ports were opened.
func Total(now Snapshot) []Flow { return flows(Snapshot{}, now, 0) }

// Between is each flow from one snapshot of a chain to a later one. If a port
// was opened in between, its flow is its whole report.
func Between(before, after Snapshot) []Flow {
	return flows(before, after, after.At.Sub(before.At))
}

func flows(before, after Snapshot, interval time.Duration) []Flow {
	var all []Flow
	for _, l := range after.Links {
		if len(l.Ends) != 2 {
			continue // an end without a peer that reports
		}
		a := change(before.end(l.Name, 0), l.Ends[0])
		b := change(before.end(l.Name, 1), l.Ends[1])
		for _, d := range [][2]broker.EndStatus{{a, b}, {b, a}} {
			all = append(all, flow(l.Name, d[0], d[1], interval))
		}
	}
	return all
}

func flow(link string, from, to broker.EndStatus, interval time.Duration) Flow {
	f := Flow{
		Link: link, From: from.Function + "." + from.Port, To: to.Function + "." + to.Port, Interval: interval,
		Sent: from.Counters.TxPackets, Received: to.Counters.RxPackets, Bytes: to.Counters.RxBytes,
		Lost: from.Counters.TxDropped + to.Counters.RxDropped, Unsent: from.Counters.TxDropped, NoBuffer: from.Counters.TxNoBuffer,
		Latency: to.Latency, Waiting: to.Depth,
	}
	for kind, n := range to.Violations {
		if !AboutReturns[kind] {
			f.Violations += n
		}
	}
	for kind, n := range from.Violations {
		if AboutReturns[kind] {
			f.Violations += n
		}
	}
	return f
}

// AboutReturns are the violations that a sender detects: its receiver is at
// fault (PROTOCOL.md, section 7). The names are from wire.ViolationNames.
var AboutReturns = map[string]bool{"return_index": true, "return_slot": true, "return_forged": true, "hold": true}

// end is one end of a link in the snapshot; the zero EndStatus if it is missing.
func (s Snapshot) end(link string, side int) broker.EndStatus {
	for _, l := range s.Links {
		if l.Name == link && side < len(l.Ends) {
			return l.Ends[side]
		}
	}
	return broker.EndStatus{}
}

// CarryOver copies, from an earlier snapshot, the last report of each end that
// the broker has lost. If an end was only disconnected, it then continues from
// there instead of reporting its whole life as one interval.
func (s Snapshot) CarryOver(before Snapshot) Snapshot {
	links := slices.Clone(s.Links)
	for i := range links {
		ends := slices.Clone(links[i].Ends)
		for side := range ends {
			if !ends[side].Connected {
				ends[side] = before.end(links[i].Name, side)
			}
		}
		links[i].Ends = ends
	}
	s.Links = links
	return s
}

// change is an end's report since its previous one. It restarts at zero if the
// port was reopened, or if a counter decreased, which an honest end never
// reports.
func change(before, after broker.EndStatus) broker.EndStatus {
	c, ok := after.Counters, true
	for _, field := range []struct {
		now *uint64
		was uint64
	}{
		{&c.TxPackets, before.Counters.TxPackets}, {&c.TxBytes, before.Counters.TxBytes},
		{&c.RxPackets, before.Counters.RxPackets}, {&c.RxBytes, before.Counters.RxBytes},
		{&c.TxNoBuffer, before.Counters.TxNoBuffer}, {&c.TxDropped, before.Counters.TxDropped},
		{&c.TxCopied, before.Counters.TxCopied}, {&c.RxDropped, before.Counters.RxDropped},
		{&c.RxCopied, before.Counters.RxCopied}, {&c.Misuse, before.Counters.Misuse},
	} {
		ok = ok && *field.now >= field.was
		*field.now -= field.was
	}
	violations, latency := map[string]uint64{}, subtract(before.Latency, after.Latency)
	for kind, n := range after.Violations {
		ok = ok && n >= before.Violations[kind]
		violations[kind] = n - before.Violations[kind]
	}
	if !ok || latency == nil || after.PID != before.PID {
		return after
	}
	after.Counters, after.Violations, after.Latency = c, violations, *latency
	return after
}

// subtract is the samples since before; nil if the count decreased.
func subtract(before, after broker.Latency) *broker.Latency {
	old := map[int]uint64{}
	for _, b := range before.Buckets {
		old[b.Index] += b.Count
	}
	var out broker.Latency
	for _, b := range after.Buckets {
		was := old[b.Index]
		if b.Count < was {
			return nil
		}
		if b.Count -= was; b.Count > 0 {
			out.Buckets = append(out.Buckets, b)
			out.Count += b.Count
		}
		delete(old, b.Index)
	}
	for _, n := range old {
		if n > 0 {
			return nil
		}
	}
	return &out
}

// join adds the samples of several intervals.
func join(parts ...broker.Latency) broker.Latency {
	sum := map[int]broker.Bucket{}
	var out broker.Latency
	for _, p := range parts {
		out.Count += p.Count
		for _, b := range p.Buckets {
			b.Count += sum[b.Index].Count
			sum[b.Index] = b
		}
	}
	for _, b := range sum {
		out.Buckets = append(out.Buckets, b)
	}
	slices.SortFunc(out.Buckets, func(a, b broker.Bucket) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// Add joins a later interval of the same direction to f.
func (f *Flow) Add(later Flow) {
	f.Interval += later.Interval
	f.Sent += later.Sent
	f.Received += later.Received
	f.Bytes += later.Bytes
	f.Lost += later.Lost
	f.Unsent += later.Unsent
	f.NoBuffer += later.NoBuffer
	f.Violations += later.Violations
	f.Latency = join(f.Latency, later.Latency)
	f.Waiting = later.Waiting
}

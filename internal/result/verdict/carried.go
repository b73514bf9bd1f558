// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// Traffic that reaches a rate shows that the link can carry it. Traffic that does not
// shows nothing: the functions may have had no more to send. So a floor is met or
// undecided by traffic alone, and never missed.

// carriedFor is how long traffic must reach a rate without a break.
const carriedFor = 10 * time.Second

// carriedRules judge the floors of a link by the functions' own traffic.
func carriedRules(l Link) []rule {
	var rs []rule
	if q := l.Requires; q.MinBitrate > 0 && l.Traffic != chain.TrafficTCP {
		c := floorOf{float64(q.MinBitrate), UnitBitrate, q.MinBitrate.String(), FormatBitrate, payload}
		rs = append(rs, c.rule("min_bitrate", passively(l)+"payload of the functions' own packets, at least"))
	}
	if q := l.Requires; q.PacketRate > 0 {
		c := floorOf{float64(q.PacketRate), UnitPacketRate, q.PacketRate.String(), FormatPacketRate,
			func(d *record.Delivery) float64 { return float64(d.PacketRate) }}
		rs = append(rs, c.rule("packet_rate", passively(l)+"the functions' own packets"))
	}
	return rs
}

// headers is the most that comes before the payload of a datagram: Ethernet with a VLAN
// tag, IPv6, UDP. What is left of a packet is at least its payload less other
// encapsulation, which is payload to the link.
const headers = 18 + 40 + 8 // bytes

// payload is a lower bound of received payload, bit/s.
func payload(d *record.Delivery) float64 {
	return math.Max(0, float64(d.ReceivedBits)-8*headers*float64(d.PacketRate))
}

// floorOf is a rate that traffic must reach.
type floorOf struct {
	floor  float64
	unit   Unit
	text   string // the requirement, as in the chain
	format func(float64) string
	of     func(*record.Delivery) float64
}

func (c floorOf) rule(requirement, method string) rule {
	return rule{
		requirement: requirement, required: atLeast(c.floor, c.unit, c.text), quantity: record.QStream,
		method: fmt.Sprintf("%s, in every interval of %v", method, carriedFor),
		judge:  func(_ float64, trials []record.Trial) Finding { return c.judge(trials) },
	}
}

// judge looks for the highest rate that traffic has reached for long enough.
func (c floorOf) judge(trials []record.Trial) Finding {
	f := newFinding(nil, nil)
	best, ok := c.sustained(trials)
	if !ok {
		f.Reason, f.Needs = fmt.Sprintf("no traffic for %v without a break", carriedFor), c.needs()
		return f
	}
	f.badness = -best
	f.Measured, f.Bound = figure(best, c.unit, c.format(best)), atLeast(best, c.unit, c.format(best))
	if best >= c.floor {
		f.Verdict, f.Reason = Met, fmt.Sprintf("traffic reached it for %v", carriedFor)
		return f
	}
	f.Reason, f.Needs = fmt.Sprintf("traffic reached only %s for %v, which does not show that the link carries no more", c.format(best), carriedFor), c.needs()
	return f
}

func (c floorOf) needs() string {
	return fmt.Sprintf("traffic of %s for %v, such as draygen's", c.text, carriedFor)
}

// sustained is the highest rate that each of enough intervals in a row has reached. ok
// is false if there are not so many in a row.
func (c floorOf) sustained(trials []record.Trial) (best float64, ok bool) {
	for first := range trials {
		lowest, length := math.Inf(1), time.Duration(0)
		for i := first; i < len(trials) && trials[i].Round == trials[first].Round+i-first && trials[i].Delivery != nil; i++ {
			lowest, length = math.Min(lowest, c.of(trials[i].Delivery)), length+trials[i].Duration
			if length >= carriedFor {
				best, ok = math.Max(best, lowest), true
				break
			}
		}
	}
	return best, ok
}

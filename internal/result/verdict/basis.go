// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// basis names the traffic of a finding: protocol, sizes and path. A figure for other
// traffic can differ several times over.
func (r rule) basis(l Link, trials []record.Trial) string {
	switch {
	case l.probed && r.quantity == record.QProbe:
		return "probes between the functions' packets, one way" + clocksOf(trials)
	case l.probed && r.quantity == record.QPathMTU:
		return "probes of the largest size, one way"
	case l.passive:
		return "the application's own traffic, passively, one way"
	case l.live:
		return "the functions' own packets, one way"
	case r.quantity == record.QPathMTU && (l.Native || len(trials) > 0 && trials[0].Instrument.Name == "draygen"):
		return "udp packets of that size, one way"
	case r.quantity == record.QPathMTU:
		return "icmp packets of that size, there and back"
	case r.quantity == record.QThroughput && l.Traffic == chain.TrafficTCP:
		return "tcp goodput, one stream"
	case r.quantity == record.QStream && l.Slots != nil:
		return l.Slots.String() + ", one way"
	}
	for _, t := range trials {
		if d := t.Delivery; d != nil && d.FrameBytes > 0 {
			return udpBasis(d.DatagramBytes, d.FrameBytes) + offeredAt(r.quantity, d)
		}
	}
	return "udp, one way"
}

// clocksOf says where stamps of two clocks were compared.
func clocksOf(trials []record.Trial) string {
	if slices.ContainsFunc(trials, func(t record.Trial) bool { return t.OneWay != nil && t.OneWay.Clocks != nil }) {
		return ", on the clocks of two nodes"
	}
	return ""
}

// udpBasis describes datagrams; frames are counted with their FCS.
func udpBasis(payload, frame int) string {
	return fmt.Sprintf("udp, %s-byte payload, %s-byte frames, one way", thousands(payload), thousands(frame))
}

// offeredAt is the rate of a throughput that was not offered as fast as the port takes it.
func offeredAt(q record.Quantity, d *record.Delivery) string {
	if q != record.QThroughput || d.OfferedBits == 0 {
		return ""
	}
	return ", offered at " + FormatBitrate(float64(d.OfferedBits))
}

// thousands prints a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

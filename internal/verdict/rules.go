// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	"github.com/drayage/dray/internal/record"
)

// DefaultPercentile is where delays are judged that name no percentile.
const DefaultPercentile = 99

// rules is one for each requirement that the link has. All trials of the run
// are given, since what a generator can do may show on another link.
func rules(l Link, all []record.Trial) []rule {
	var rs []rule
	q := l.Requires
	pct := float64(q.Percentile)
	if pct == 0 {
		pct = DefaultPercentile
	}
	if q.Latency > 0 {
		rs = append(rs, rule{
			requirement: "latency", required: fmt.Sprintf("≤ %s at p%g", q.Latency, pct),
			method:   "full round trip, conservative; Clopper–Pearson with design effect",
			quantity: record.QLatency, roundTrip: true,
			judge: delay{l, pct, int64(q.Latency), "round trip", false}.judge,
		})
	}
	if q.PDV > 0 {
		rs = append(rs, rule{
			requirement: "packet_delay_variation", required: fmt.Sprintf("≤ %s at p%g", q.PDV, pct),
			method:   "round trip above the least of its trial (RFC 5481), conservative; Clopper–Pearson with design effect",
			quantity: record.QLatency, roundTrip: true,
			judge: delay{l, pct, int64(q.PDV), "round-trip variation", true}.judge,
		})
	}
	if q.LossRatio != nil {
		rs = append(rs, rule{
			requirement: "packet_loss_ratio", required: lossRequired(l),
			method:   "UDP at load, read at the receiver; Clopper–Pearson with design effect",
			quantity: record.QDelivery,
			judge:    loss{l.Load, float64(*q.LossRatio)}.judge,
		})
	}
	if q.MinBitrate > 0 {
		rs = append(rs, rule{
			requirement: "min_bitrate", required: "≥ " + q.MinBitrate.String(),
			method:   "TCP goodput received; one-sided Student t over trials",
			quantity: record.QThroughput, judge: minBitrate(q.MinBitrate),
		})
	}
	if q.MaxBitrate > 0 {
		rs = append(rs, rule{
			requirement: "max_bitrate", required: "≤ " + q.MaxBitrate.String(),
			method:   "TCP goodput received; one-sided Student t over trials",
			quantity: record.QThroughput, judge: maxBitrate(q.MaxBitrate),
		})
	}
	if q.PacketRate > 0 {
		rs = append(rs, rule{
			requirement: "packet_rate", required: "≥ " + q.PacketRate.String(),
			method:   "UDP in 64-byte frames, read at the receiver; one-sided Student t over trials",
			quantity: record.QPacketRate, judge: packetRate(q.PacketRate, all),
		})
	}
	if q.MTU > 0 {
		rs = append(rs, rule{
			requirement: "mtu", required: fmt.Sprintf("≥ %d B", q.MTU),
			method:   "a packet of that size with fragmentation forbidden, in every round",
			quantity: record.QPathMTU, judge: pathMTU(q.MTU),
		})
	}
	return rs
}

func lossRequired(l Link) string {
	if l.Load == 0 {
		return "≤ " + l.Requires.LossRatio.String()
	}
	return fmt.Sprintf("≤ %s at %s", *l.Requires.LossRatio, l.Load)
}

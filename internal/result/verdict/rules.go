// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// DefaultPercentile is for delays without a stated percentile.
const DefaultPercentile = 99

// rules returns one rule for each requirement of the link. It gets all trials of the
// run, since another link may show a generator's capability.
func rules(l Link, all []record.Trial) []rule {
	var rs []rule
	q := l.Requires
	pct := float64(q.Percentile)
	if pct == 0 {
		pct = DefaultPercentile
	}
	if q.Latency > 0 {
		rs = append(rs, rule{
			requirement: "latency", required: delayRequired(q.Latency, pct),
			method:   stamped(l) + under(l) + "; Clopper–Pearson with design effect",
			quantity: delayQuantity(l),
			judge:    delay{l, pct, int64(q.Latency), "one-way latency", false}.judge,
		})
	}
	if q.PDV > 0 {
		rs = append(rs, rule{
			requirement: "packet_delay_variation", required: delayRequired(q.PDV, pct),
			method:   passively(l) + "one way above the least of its trial (RFC 5481)" + under(l) + "; Clopper–Pearson with design effect",
			quantity: delayQuantity(l),
			judge:    delay{l, pct, int64(q.PDV), "one-way variation", true}.judge,
		})
	}
	if q.LossRatio != nil {
		rs = append(rs, rule{
			requirement: "packet_loss_ratio", required: lossRequired(l),
			method:   counted(l) + under(l) + "; Clopper–Pearson with design effect",
			quantity: record.QStream,
			judge:    loss{l, float64(*q.LossRatio)}.judge,
		})
	}
	if q.OnTime > 0 {
		rs = append(rs, rule{
			requirement: "on_time", required: onTimeRequired(l),
			method:   "messages within their O-RAN receive windows; Clopper–Pearson with design effect",
			quantity: record.QStream,
			judge:    onTime{l, float64(q.OnTime)}.judge,
		})
	}
	if l.probed {
		rs = append(rs, mtuRules(q.MTU, "one probe of the largest size at least, in every interval")...)
	}
	if l.live {
		rs = append(rs, carriedRules(l)...)
		if l.passive {
			rs = append(rs, unseenRules(l)...)
		}
		return rs
	}
	if q.MinBitrate > 0 {
		rs = append(rs, rule{
			requirement: "min_bitrate", required: atLeast(float64(q.MinBitrate), UnitBitrate, q.MinBitrate.String()),
			method:   goodputName(l) + " received; one-sided Student t over trials",
			quantity: record.QThroughput, judge: bitrate{l.Traffic, all}.atLeast(q.MinBitrate),
		})
	}
	if q.MaxBitrate > 0 {
		rs = append(rs, rule{
			requirement: "max_bitrate", required: atMost(float64(q.MaxBitrate), UnitBitrate, q.MaxBitrate.String()),
			method:   goodputName(l) + " received; one-sided Student t over trials",
			quantity: record.QThroughput, judge: bitrate{l.Traffic, all}.atMost(q.MaxBitrate),
		})
	}
	if q.PacketRate > 0 {
		rs = append(rs, rule{
			requirement: "packet_rate", required: atLeast(float64(q.PacketRate), UnitPacketRate, q.PacketRate.String()),
			method:   "frames of 64 bytes (84 over IPv6), read at the receiver; one-sided Student t over trials",
			quantity: record.QPacketRate, judge: packetRate(q.PacketRate, all),
		})
	}
	return append(rs, mtuRules(q.MTU, "a packet of that size with fragmentation forbidden, in every round")...)
}

// mtuRules judge the MTU of a link, if it has to have one.
func mtuRules(mtu int, method string) []rule {
	if mtu == 0 {
		return nil
	}
	required := atLeast(float64(mtu), UnitBytes, fmt.Sprintf("%d B", mtu))
	return []rule{{requirement: "mtu", required: required, method: method, quantity: record.QPathMTU, judge: pathMTU(mtu)}}
}

// delayQuantity is the source of delays: the link's load, or, without one, probes of an
// idle link. The functions' own traffic is a stream.
func delayQuantity(l Link) record.Quantity {
	if l.Load == 0 && (l.probed || !l.live) {
		return record.QProbe
	}
	return record.QStream
}

// under names the traffic of the samples.
func under(l Link) string {
	if l.Load == 0 {
		return ""
	}
	return " of the load"
}

// goodputName is the name of a bitrate measurement.
func goodputName(l Link) string {
	if l.Traffic == chain.TrafficTCP {
		return "TCP goodput"
	}
	return "payload of datagrams"
}

func delayRequired(limit units.Duration, percentile float64) Figure {
	f := atMost(float64(limit), UnitTime, fmt.Sprintf("%s at p%g", limit, percentile))
	f.Percentile = percentile
	return f
}

func lossRequired(l Link) Figure {
	text := l.Requires.LossRatio.String()
	if l.Load > 0 {
		text += " at " + l.Load.String()
	}
	return atMost(float64(*l.Requires.LossRatio), UnitRatio, text)
}

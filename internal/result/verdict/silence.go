// SPDX-License-Identifier: Apache-2.0

package verdict

import "github.com/drayage/dray/internal/result/record"

// fillSilence completes the trials between two ends that ended in an error without a
// result, if nothing passes between them. An instrument that cannot reach its other
// half reports no figure, but the link's figure is then known. Nothing passes if at
// least one trial of the pair, in either direction, has a result, and no result shows a
// received packet. Without that proof an error stays an error.
func fillSilence(l Link, trials []record.Trial) []record.Trial {
	type pair struct{ a, b string }
	of := func(t record.Trial) pair {
		return pair{min(t.From, t.To), max(t.From, t.To)}
	}
	silent := map[pair]bool{}
	for _, t := range trials {
		if passed, known := anythingPassed(t); known {
			before, seen := silent[of(t)]
			silent[of(t)] = !passed && (before || !seen)
		}
	}
	out := make([]record.Trial, len(trials))
	for i, t := range trials {
		if _, known := anythingPassed(t); !known && t.Error != "" && silent[of(t)] {
			t = nothingPassed(l, t)
		}
		out[i] = t
	}
	return out
}

// anythingPassed reports whether a trial received any packet; known is false if it has
// no result.
func anythingPassed(t record.Trial) (passed, known bool) {
	switch {
	case t.Throughput != nil:
		return t.Throughput.BitsPerSecond > 0, true
	case t.Latency != nil:
		return len(t.Latency.Histogram.Counts) > 0, true
	case t.Delivery != nil:
		return t.Delivery.Received > 0 || t.Delivery.ReceiverDrops > 0, true
	case t.PathMTU != nil:
		return t.PathMTU.Passed || t.PathMTU.Largest > 0, true
	case t.Requests != nil:
		return t.Requests.PerSecond > 0, true
	}
	return false, false
}

// nothingPassed gives a trial the result that its instrument could not report.
func nothingPassed(l Link, t record.Trial) record.Trial {
	switch t.Quantity {
	case record.QThroughput:
		t.Throughput = &record.Throughput{Traffic: string(l.Traffic)}
	case record.QStream, record.QProbe:
		none := record.Histogram{Bits: 5}
		t.OneWay = &record.OneWay{Latency: none, Intended: none, Lateness: none, IPDV: none}
		t.Delivery = &record.Delivery{OfferedBits: uint64(l.Load), SentBits: uint64(l.Load), Sent: 1, Lost: 1}
	case record.QPacketRate:
		rate := uint64(l.Requires.PacketRate)
		t.Delivery = &record.Delivery{OfferedRate: rate, SentRate: rate, Sent: 1, Lost: 1}
	case record.QPathMTU:
		t.PathMTU = &record.PathMTU{Wanted: l.Requires.MTU}
	}
	return t
}

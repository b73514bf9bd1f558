// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/instrument"
	"github.com/drayage/dray/internal/plan"
)

const (
	shortest = time.Second // of a trial; sockperf, iperf3 and qperf take whole seconds
	// beyondQuantile is how many samples must lie beyond a percentile.
	beyondQuantile = 10
	// lossSamples is how many packets without loss prove a ratio r: 3/r.
	lossSamples = 3
	// The rates of a ping-pong: a higher one than 2,000/s would leave no time
	// to wait for an answer of 500 µs without falling behind.
	lowMessageRate, highMessageRate = 1000, 2000
	// probeBitrate is offered where a loss ratio is required of a link that
	// has neither a load nor a bitrate.
	probeBitrate = 10_000_000
	// rateMargin is offered above a required packet rate, so that the bound on
	// what arrives can lie above the requirement.
	rateMargin = 1.1
)

// latencyParams sizes a ping-pong trial: enough requests over all rounds that
// the percentile is supported with the profile's surplus.
func latencyParams(l plan.Link, o Options) instrument.Params {
	p := o.pace()
	percentile := float64(l.Requires.Percentile)
	if percentile <= 0 || percentile >= 100 {
		percentile = 99
	}
	each := p.surplus * beyondQuantile / (1 - percentile/100) / float64(p.rounds)
	out := instrument.Params{Load: uint64(l.Load), MessageRate: lowMessageRate, Duration: o.Duration}
	if out.Duration > 0 {
		return out
	}
	length := func(rate float64) time.Duration {
		d := time.Duration(each/rate*float64(time.Second)) + instrument.SockperfUnused
		return wholeSeconds(min(max(d, shortest), p.longest))
	}
	if out.Duration = length(lowMessageRate); out.Duration > shortest {
		out.MessageRate, out.Duration = highMessageRate, length(highMessageRate)
	}
	return out
}

// deliveryParams sizes a loss trial: at the declared load, or at the required
// bitrate where no load is declared.
func deliveryParams(l plan.Link, o Options) instrument.Params {
	p := o.pace()
	bits := uint64(l.Load)
	if bits == 0 {
		bits = uint64(l.Requires.MinBitrate)
	}
	if bits == 0 {
		bits = probeBitrate
	}
	out := instrument.Params{Bitrate: bits, Duration: o.Duration}
	if out.Duration > 0 {
		return out
	}
	var each float64
	if r := l.Requires.LossRatio; r != nil && *r > 0 {
		each = p.surplus * lossSamples / float64(*r) / float64(p.rounds)
	}
	out.Duration = clamp(each*packetBits(l)/float64(bits), p.longest)
	return out
}

// packetBits is about what one packet of the link carries.
func packetBits(l plan.Link) float64 { return 8 * math.Max(64, float64(l.MTU-28)) }

func packetRateParams(l plan.Link, o Options) instrument.Params {
	rate := math.Ceil(float64(l.Requires.PacketRate) * rateMargin)
	return instrument.Params{PacketRate: uint64(rate), Duration: orElse(o.Duration, shortest)}
}

func throughputParams(_ plan.Link, o Options) instrument.Params {
	return instrument.Params{Duration: orElse(o.Duration, o.pace().throughput)}
}

func requestsParams(_ plan.Link, o Options) instrument.Params {
	return instrument.Params{Duration: orElse(o.Duration, shortest)}
}

// idleLatencyParams is for the cross-check where no latency is required.
func idleLatencyParams(_ plan.Link, o Options) instrument.Params {
	return instrument.Params{MessageRate: lowMessageRate, Duration: orElse(o.Duration, shortest)}
}

// mtuParams tries the required packet, or the largest that the ports take.
func mtuParams(l plan.Link, _ Options) instrument.Params {
	if l.Requires.MTU > 0 {
		return instrument.Params{MTU: l.Requires.MTU}
	}
	return instrument.Params{MTU: l.MTU}
}

func orElse(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}

// clamp is a number of seconds as a duration from shortest to longest.
func clamp(seconds float64, longest time.Duration) time.Duration {
	if !(seconds < longest.Seconds()) {
		return longest
	}
	return max(shortest, time.Duration(seconds*float64(time.Second)))
}

func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(d.Seconds())) * time.Second
}

// needsLatency reports whether round trips are to be judged.
func needsLatency(r chain.Requires) bool { return r.Latency > 0 || r.PDV > 0 }

// needsThroughput reports whether a bitrate is to be judged.
func needsThroughput(r chain.Requires) bool { return r.MinBitrate > 0 || r.MaxBitrate > 0 }

// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

const (
	shortest = time.Second // of a trial; iperf3, sockperf and qperf take whole seconds
	// beyondQuantile is how many samples must lie beyond a percentile.
	beyondQuantile = 10
	// lossSamples: this many/r packets without loss prove a loss ratio r.
	lossSamples = 3
	// The rates of probes and of a ping-pong, per second. Probes at the higher rate
	// are 5 Mb/s: little enough to call a link idle.
	lowProbeRate, highProbeRate, pingPongRate = 1000, 10_000, 2000
	// busyRate is roughly the packet rate, per second, that keeps a CPU busy at
	// either end of a socket.
	busyRate = 150_000
	// probeBitrate is offered if a loss ratio is required of a link that has neither
	// a load nor a bitrate.
	probeBitrate = 10_000_000
	// rateMargin is the factor above a required packet rate, so that the bound on
	// arrivals can lie above the requirement.
	rateMargin = 1.1
)

// streamParams sizes a stream: at the declared load, or without one at the
// required bitrate; long enough over all rounds for the percentile and the loss
// ratio, with the profile's surplus.
func streamParams(l plan.Link, o Options) instrument.Params {
	bits := uint64(l.Load)
	if bits == 0 {
		bits = uint64(l.Requires.MinBitrate)
	}
	if bits == 0 {
		bits = probeBitrate
	}
	out := instrument.Params{Bitrate: bits, Duration: o.Duration, Frame: frame(l), Slots: l.SlotLoad()}
	if out.Duration > 0 {
		return out
	}
	p := o.pace()
	var samples float64
	if r := l.Requires.LossRatio; r != nil && *r > 0 {
		samples = lossSamples / float64(*r)
	}
	if share := float64(l.Requires.OnTime); share > 0 {
		samples = max(samples, lossSamples/(1-share))
	}
	if needsLatency(l.Requires) {
		samples = max(samples, percentileSamples(l))
	}
	out.Duration = clamp(p.surplus*samples/float64(p.streams)*packetBits(l)/float64(bits), p.least, p.longest)
	return out
}

// percentileSamples is how many samples the link's percentile takes.
func percentileSamples(l plan.Link) float64 {
	percentile := float64(l.Requires.Percentile)
	if percentile <= 0 || percentile >= 100 {
		percentile = verdict.DefaultPercentile
	}
	return beyondQuantile / (1 - percentile/100)
}

// probeParams sizes the probes of an idle link.
func probeParams(l plan.Link, o Options) instrument.Params {
	p := o.pace()
	out := instrument.Params{MessageRate: lowProbeRate, Duration: orElse(o.Duration, p.least)}
	if o.Duration > 0 || !needsLatency(l.Requires) {
		return out
	}
	each := p.surplus * percentileSamples(l) / float64(p.streams)
	if each > lowProbeRate*p.least.Seconds() {
		out.MessageRate = highProbeRate
	}
	out.Duration = clamp(each/float64(out.MessageRate), p.least, p.longest)
	return out
}

// packetBits is the approximate payload of one packet of the link.
func packetBits(l plan.Link) float64 {
	if load := l.SlotLoad(); load != nil {
		return float64(l.Load) / float64(load.PacketRate())
	}
	if l.Frame > 0 {
		return 8 * float64(l.UDPPayload())
	}
	return 8 * math.Max(64, float64(l.UDPPayload()))
}

// frame is the link's frame length as draygen counts it, without FCS; 0: frames
// that fill the MTU.
func frame(l plan.Link) int { return max(0, l.Frame-4) }

func packetRateParams(l plan.Link, o Options) instrument.Params {
	rate := math.Ceil(float64(l.Requires.PacketRate) * rateMargin)
	return instrument.Params{PacketRate: uint64(rate), Duration: orElse(o.Duration, o.pace().least)}
}

func throughputParams(l plan.Link, o Options) instrument.Params {
	return instrument.Params{Duration: orElse(o.Duration, o.pace().throughput), Frame: frame(l)}
}

func requestsParams(_ plan.Link, o Options) instrument.Params {
	return instrument.Params{Duration: orElse(o.Duration, shortest)}
}

// pingPongParams is the cross-check of delays: round trips under the link's load.
func pingPongParams(l plan.Link, o Options) instrument.Params {
	load := uint64(l.Load)
	if l.SlotLoad() != nil {
		load = 0 // other traffic would say nothing about messages in slots
	}
	return instrument.Params{Load: load, MessageRate: pingPongRate, Duration: orElse(o.Duration, shortest)}
}

// checkParams is the cross-check of loss: the stream's rate, for a second.
func checkParams(l plan.Link, o Options) instrument.Params {
	p := streamParams(l, o)
	p.Slots, p.Duration = nil, orElse(o.Duration, shortest)
	return p
}

// mtuParams tries the required packet, or the largest that the ports accept.
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

// clamp converts seconds to a duration between least and longest.
func clamp(seconds float64, least, longest time.Duration) time.Duration {
	if !(seconds < longest.Seconds()) {
		return longest
	}
	return max(least, time.Duration(seconds*float64(time.Second)))
}

// needsLatency reports whether delays are to be judged.
func needsLatency(r chain.Requires) bool { return r.Latency > 0 || r.PDV > 0 }

// needsThroughput reports whether a bitrate is to be judged.
func needsThroughput(r chain.Requires) bool { return r.MinBitrate > 0 || r.MaxBitrate > 0 }

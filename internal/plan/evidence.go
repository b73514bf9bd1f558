// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// estimate is the expected performance of one transport on one link.
type estimate struct {
	*needs
	figures
	transport string
}

func (p *planner) estimate(t *inventory.Transport, n *needs) estimate {
	return estimate{needs: n.over(t), figures: figuresOf(p.inv, t.Name), transport: t.Name}
}

// evidence compares every requirement of the link with the transport's expected
// performance, in the order of the chain reference.
func (p *planner) evidence(t *inventory.Transport, n *needs) []Evidence {
	e := p.estimate(t, n)
	r := &n.link.Requires
	var out []Evidence
	add := func(required bool, judge func() Evidence) {
		if required {
			out = append(out, judge())
		}
	}
	add(r.Latency > 0, e.judgeLatency)
	add(r.PDV > 0, e.judgePDV)
	add(r.LossRatio != nil, e.judgeLoss)
	add(r.OnTime > 0, e.judgeOnTime)
	add(r.MinBitrate > 0, e.judgeMinBitrate)
	add(r.MaxBitrate > 0, e.judgeMaxBitrate)
	add(r.PacketRate > 0, e.judgePacketRate)
	add(r.MTU > 0, e.judgeMTU)
	return out
}

func firstUnmet(evidence []Evidence) *Evidence {
	for i := range evidence {
		if !evidence[i].Meets {
			return &evidence[i]
		}
	}
	return nil
}

func (e estimate) judgeLatency() Evidence {
	r := e.link.Requires
	return e.judgeDelay("latency", r.Latency, e.latency(float64(r.Percentile)))
}

func (e estimate) judgePDV() Evidence {
	r := e.link.Requires
	return e.judgeDelay("packet_delay_variation", r.PDV, e.pdv(float64(r.Percentile)))
}

func (e estimate) judgeDelay(requirement string, limit units.Duration, f figure) Evidence {
	at := e.link.Requires.Percentile
	ev := Evidence{Requirement: requirement, Required: fmt.Sprintf("≤ %v at p%v", limit, at)}
	f, why := e.queued(f)
	if why != "" {
		ev.Expected, ev.Source = unknown, why
		return ev
	}
	ev.Expected = fmt.Sprintf("%v at p%v", duration(f.value), at)
	ev.Source = f.source
	ev.Meets = f.value <= float64(limit)
	return ev
}

// queued adds the queueing delay of the shaper if the load can fill its queue. If the
// transport cannot carry the load, there is no evidence: nothing bounds the queue.
func (e estimate) queued(f figure) (_ figure, why string) {
	carried := e.carried()
	switch {
	case !f.known():
		return f, fmt.Sprintf("no evidence reaches p%v", e.link.Requires.Percentile)
	case carried.known() && float64(e.load) >= carried.value:
		return f, fmt.Sprintf("a load of %v fills what %s carries", e.load, e.transport)
	case e.overloadsShape():
		f.value += queueBound(e.tight, e.mtu)
		f.source += ", and the full queue of the " + e.tight.Kind
	}
	return f, ""
}

// duration limits the wait in an absurdly long queue to a printable value.
func duration(ns float64) units.Duration {
	const longest = 1 << 62
	return units.Duration(min(ns, longest))
}

// overloadsShape compares payload with payload, as loads are counted.
func (e estimate) overloadsShape() bool {
	return shapedRate(e.tight) > 0 && uint64(e.load) >= e.datagrams(shapedRate(e.tight))
}

func (e estimate) judgeLoss() Evidence {
	limit := *e.link.Requires.LossRatio
	ev := Evidence{Requirement: "packet_loss_ratio", Required: fmt.Sprintf("≤ %v", limit)}
	f := e.lost()
	if !f.known() {
		ev.Expected, ev.Source = unknown, noEvidence
		return ev
	}
	ev.Expected = lossText(f.value)
	ev.Source = f.source
	ev.Meets = f.value <= float64(limit)
	return ev
}

// lost is the loss of the load: that of the transport, or of what it cannot carry.
func (e estimate) lost() figure {
	f := e.loss()
	capacity, what := e.carried().value, e.transport
	if limit := float64(e.datagrams(shapedRate(e.tight))); limit > 0 && (capacity == 0 || limit < capacity) {
		capacity, what = limit, e.tight.Kind
	}
	if excess := 1 - capacity/float64(e.load); f.known() && capacity > 0 && excess > f.value {
		f = figure{excess, fmt.Sprintf("a load of %v, above what %s carries", e.load, what)}
	}
	return f
}

// shapedBitrate is the rate of the link's traffic through its shaper.
func (e estimate) shapedBitrate() figure {
	return e.capped(e.bitrate(), e.goodput(shapedRate(e.tight)), "payload through the ")
}

func (e estimate) judgeMinBitrate() Evidence {
	limit := e.link.Requires.MinBitrate
	f := e.shapedBitrate()
	ev := judgeRate("min_bitrate", limit, f, units.Bitrate(roundDown(f.value)))
	if !f.known() {
		ev.Source = fmt.Sprintf("%s of %s traffic", noEvidence, e.traffic())
	}
	return ev
}

func (e estimate) traffic() chain.Traffic { return cmp.Or(e.link.Traffic, chain.TrafficUDP) }

func (e estimate) judgePacketRate() Evidence {
	limit := e.link.Requires.PacketRate
	perSecond := uint64(shapedRate(e.tight)) / uint64(8*e.smallFrame())
	f := e.capped(e.packetRate(), perSecond, fmt.Sprintf("%d-byte frames through the ", e.smallFrame()))
	return judgeRate("packet_rate", limit, f, units.PacketRate(roundDown(f.value)))
}

// capped limits a rate to the rate of the link's shaper; limit 0 means none.
func (e estimate) capped(f figure, limit uint64, source string) figure {
	if limit == 0 || !f.known() || f.value <= float64(limit) {
		return f
	}
	return figure{float64(limit), source + e.tight.Kind + fmt.Sprintf(" at %v", shapedRate(e.tight))}
}

// judgeRate compares a rate with a required minimum. It rounds the rate down first and
// judges the printed value.
func judgeRate[T units.Bitrate | units.PacketRate](requirement string, limit T, f figure, expected T) Evidence {
	ev := Evidence{Requirement: requirement, Required: fmt.Sprintf("≥ %v", limit)}
	if !f.known() {
		ev.Expected, ev.Source = unknown, noEvidence
		return ev
	}
	ev.Expected = fmt.Sprint(expected)
	ev.Source = f.source
	ev.Meets = expected >= limit
	return ev
}

// judgeMaxBitrate checks what limits the rate: a transport that happens to be slow is
// no evidence.
func (e estimate) judgeMaxBitrate() Evidence {
	limit := e.link.Requires.MaxBitrate
	ev := Evidence{Requirement: "max_bitrate", Required: fmt.Sprintf("≤ %v", limit)}
	var rate units.Bitrate
	for _, q := range e.shapes {
		if shapedRate(q) == 0 {
			ev.Expected, ev.Source = "unlimited", fmt.Sprintf("qos: a %s does not limit the rate", q.Kind)
			return ev
		}
		rate = max(rate, shapedRate(q))
	}
	ev.Expected = fmt.Sprint(rate)
	ev.Source = e.tight.Kind + " at the egress of every port"
	ev.Meets = rate <= limit
	return ev
}

func (e estimate) judgeMTU() Evidence {
	limit := e.link.Requires.MTU
	return Evidence{
		Requirement: "mtu",
		Required:    fmt.Sprintf("≥ %d", limit),
		Expected:    fmt.Sprint(e.mtu),
		Source:      "mtu of the ports",
		Meets:       e.mtu >= limit,
	}
}

const (
	unknown    = "unknown"
	noEvidence = "neither a calibration record nor a stated default"
)

// threeDigits rounds a ratio for printing; the exact one is judged.
func threeDigits(v float64) units.Ratio {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // parses its own output
	return units.Ratio(r)
}

// lossText is a loss with three digits, rounded up: what is allowed by it is enough.
func lossText(v float64) string {
	r := float64(threeDigits(v))
	if r < v {
		step := math.Pow(10, math.Floor(math.Log10(v))-2)
		r = float64(threeDigits(r + step))
	}
	return fmt.Sprint(units.Ratio(r))
}

// allow is the beginning of a fix: to allow what is expected, or less load if everything
// would be lost.
func (ev Evidence) allow() string {
	if ev.Requirement == "packet_loss_ratio" && ev.Expected == lossText(1) {
		return "lower the load"
	}
	return "allow " + ev.Expected
}

// roundDown keeps four significant digits of a rate.
func roundDown(v float64) uint64 {
	step := uint64(1)
	for n := uint64(v); n >= 10000; n /= 10 {
		step *= 10
	}
	return uint64(v) / step * step
}

// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/drayage/dray/internal/instrument"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/trial"
	"github.com/drayage/dray/internal/verdict"
)

// measurement is one kind of trial in one direction of a link.
type measurement struct {
	link     plan.Link
	from, to plan.End
	tool     instrument.Instrument
	quantity record.Quantity
	word     string // for a user
	params   instrument.Params
	rounds   int  // 0: as often as the profile says
	noWarmup bool // see trial.Cell
	overhead time.Duration
	threads  int // that each of the two functions has busy
}

// matrix is everything to measure of a plan, in a fixed order. It follows the
// judge's directions: every ordered pair of the link's ports. A link end that
// is a host interface has no instrument beyond it, and so no measurement.
func matrix(p *plan.Plan, o Options) []measurement {
	var all []measurement
	for _, l := range p.Links {
		ends := map[string]plan.End{}
		for _, e := range l.Ends {
			ends[e.String()] = e
		}
		for _, d := range verdict.FromPlan(l).Directions {
			for _, m := range kinds(l, o) {
				m.link, m.from, m.to = l, ends[d.From], ends[d.To]
				all = append(all, m)
			}
		}
	}
	return all
}

// kinds is what to measure in each direction of a link: what its requirements
// take, and as a cross-check one round of TCP, ping-pong and request/response
// where they are not measured anyway.
func kinds(l plan.Link, o Options) []measurement {
	r := l.Requires
	var ms []measurement
	if needsLatency(r) {
		m := latency(latencyParams(l, o))
		ms = append(ms, m)
	} else {
		ms = append(ms, once(latency(idleLatencyParams(l, o))))
	}
	if m := throughput(throughputParams(l, o)); needsThroughput(r) {
		ms = append(ms, m)
	} else {
		ms = append(ms, once(m))
	}
	if r.LossRatio != nil {
		ms = append(ms, measurement{tool: instrument.Iperf{}, quantity: record.QDelivery, word: "loss",
			params: deliveryParams(l, o), overhead: 200 * time.Millisecond, threads: 1})
	}
	if r.PacketRate > 0 {
		ms = append(ms, measurement{tool: instrument.Iperf{}, quantity: record.QPacketRate, word: "packet rate",
			params: packetRateParams(l, o), overhead: 200 * time.Millisecond, threads: 1})
	}
	// Also where no MTU is required: that not even a ping passes is what tells
	// a dead link from instruments that fail.
	ms = append(ms, once(measurement{tool: instrument.Ping{}, quantity: record.QPathMTU, word: "MTU",
		params: mtuParams(l, o), overhead: 200 * time.Millisecond}))
	return append(ms, once(measurement{tool: instrument.Qperf{}, quantity: record.QRequests, word: "requests",
		params: requestsParams(l, o), overhead: 200 * time.Millisecond, threads: 1}))
}

// latency leaves the warm-up to sockperf, which throws its own beginning away
// after the load has run for two seconds.
func latency(p instrument.Params) measurement {
	m := measurement{tool: instrument.Sockperf{}, quantity: record.QLatency, word: "latency", params: p,
		overhead: instrument.SockperfOverhead, threads: 1, noWarmup: true}
	if p.Load > 0 {
		m.threads, m.overhead = 2, m.overhead+200*time.Millisecond
	}
	return m
}

func throughput(p instrument.Params) measurement {
	return measurement{tool: instrument.Iperf3{}, quantity: record.QThroughput, word: "throughput", params: p,
		overhead: 200 * time.Millisecond, threads: 1}
}

// once makes it a single trial: a cross-check, or a result that cannot vary.
func once(m measurement) measurement {
	m.rounds, m.noWarmup = 1, true
	return m
}

// id is the measurement's part of a trial's id.
func (m measurement) id() string {
	return m.link.Name + "-" + string(m.quantity) + "-" + m.from.String() + "-" + m.to.String()
}

func (m measurement) expect() time.Duration { return m.params.Duration + m.overhead }

// demand is the client's threads in one function and the server's in the other.
func (m measurement) demand() trial.Demand {
	return trial.Demand{m.from.Function: m.threads}.With(trial.Demand{m.to.Function: m.threads})
}

// Estimate is about how long Links takes.
func Estimate(p *plan.Plan, o Options) time.Duration {
	return engine(o).Estimate(cells(matrix(p, o), nil))
}

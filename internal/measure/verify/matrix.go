// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

// measurement is one kind of trial in one direction of a link.
type measurement struct {
	link       plan.Link
	from, to   plan.End
	tool       instrument.Instrument
	quantity   record.Quantity
	word       string // for a user
	params     instrument.Params
	rounds     int  // in this look; 0: as the profile sets
	noWarmup   bool // see runner.Item
	crossCheck bool // see record.Trial
	overhead   time.Duration
	look       int    // see record.Trial
	before     int    // rounds run before this look
	busy       [2]int // threads that always want a CPU, of the sender's function and of the receiver's
}

// matrix is all of a plan's measurements, in a fixed order. It follows the
// judge's directions: every ordered pair of the link's ports. A link end that is
// a host interface has no instrument beyond it, and so no measurement. Nor has a link
// whose ports applications have opened: see observation.
func matrix(p *plan.Plan, o Options) []measurement {
	var all []measurement
	for _, l := range p.Links {
		if slices.Contains(o.Held, l.Name) {
			continue
		}
		ends := map[string]plan.End{}
		for _, e := range l.Ends {
			ends[e.String()] = e
		}
		for _, d := range verdict.FromPlan(l).Directions {
			ms := kinds(l, o)
			// A round trip is the same from either side.
			if d.From < d.To {
				ms = append(ms, roundTrips(l, o)...)
			}
			for _, m := range ms {
				if m.crossCheck && !o.pace().crossChecks {
					continue
				}
				m.link, m.from, m.to = l, ends[d.From], ends[d.To]
				if native(l) && apart(p, m.from, m.to) && roomToPoll(l, o) {
					m.params.Poll, m.busy[1] = true, 1
				}
				if m.params.Slots != nil && apart(p, m.from, m.to) {
					m.params.Poll, m.busy = true, [2]int{1, 1}
				}
				m = m.onDevices()
				if o.Far {
					m.overhead += farStarts
				}
				all = append(all, m)
			}
		}
	}
	return all
}

// farStarts is how long the programs at both ends take to start on other machines.
const farStarts = time.Second

// ealStarts is how long a program at a dpdk port takes to start.
const ealStarts = time.Second

// onDevices allows for dpdk ports: EAL starts slowly, sink and sender one after
// the other, and receivers there poll.
func (m measurement) onDevices() measurement {
	for _, e := range []plan.End{m.from, m.to} {
		if e.Face == chain.FaceDPDK {
			m.overhead += ealStarts
		}
	}
	if m.to.Face == chain.FaceDPDK {
		m.busy[1] = 1
	}
	return m
}

// kinds are the measurements in each direction of a link: those its requirements
// take, and one round of the others, to see that the instruments agree.
func kinds(l plan.Link, o Options) []measurement {
	if l.Course != nil {
		return pathKinds(l, o)
	}
	r := l.Requires
	ms := streams(l, o)
	ms = append(ms, throughputs(l, o)...)
	if r.PacketRate > 0 {
		ms = append(ms, stream(l, o, record.QPacketRate, "packet rate", packetRateParams(l, o)))
	}
	// Even if no MTU is required: a failed ping distinguishes a dead link from
	// failing instruments.
	mtu := measurement{tool: instrument.Ping{}, quantity: record.QPathMTU, word: "MTU", params: mtuParams(l, o), overhead: 200 * time.Millisecond}
	if native(l) || o.Far {
		mtu.tool = instrument.Draygen{Quantity: record.QPathMTU}
		return append(ms, once(mtu))
	}
	if r.PacketRate > 0 {
		ms = append(ms, crossCheck(iperf(record.QPacketRate, packetRateParams(l, o))))
	}
	if r.LossRatio != nil {
		ms = append(ms, crossCheck(iperf(record.QDelivery, checkParams(l, o))))
	}
	return append(ms, once(mtu))
}

// streams are the stamped packets from which delay and loss are judged: at the
// link's load, both from the same packets. Without a load, a link is probed for
// delay, and loaded for loss.
func streams(l plan.Link, o Options) []measurement {
	r := l.Requires
	loaded := stream(l, o, record.QStream, "stream", streamParams(l, o))
	if l.Load > 0 {
		if !needsLatency(r) && r.LossRatio == nil && r.OnTime == 0 {
			loaded = once(loaded)
		}
		return []measurement{loaded}
	}
	probes := stream(l, o, record.QProbe, "latency", probeParams(l, o))
	if !needsLatency(r) {
		probes = once(probes)
	}
	if r.LossRatio == nil {
		return []measurement{probes}
	}
	return []measurement{probes, loaded}
}

// stream is a measurement with draygen, which warms up each trial itself.
func stream(l plan.Link, o Options, q record.Quantity, word string, p instrument.Params) measurement {
	m := measurement{tool: instrument.Draygen{Quantity: q}, quantity: q, word: word, params: p,
		rounds: o.pace().streams, noWarmup: true, overhead: 200 * time.Millisecond}
	rate := max(float64(p.Bitrate)/packetBits(l), float64(p.PacketRate))
	if rate > busyRate {
		m.busy = [2]int{1, 1}
	}
	return m
}

// apart reports whether two functions can run at once. A receiver that polls on
// the only CPU would starve its sender.
func apart(p *plan.Plan, from, to plan.End) bool {
	cpus := map[int]bool{}
	for _, e := range []plan.End{from, to} {
		f := p.Function(e.Function)
		if f == nil || len(f.CPUs) == 0 {
			return goruntime.NumCPU() > 1
		}
		for _, cpu := range f.CPUs {
			cpus[cpu] = true
		}
	}
	return len(cpus) > 1
}

// throughputs are of the link's traffic, judged if a bitrate is required. TCP
// next to datagrams shows the effect of segment offloads on the same link.
func throughputs(l plan.Link, o Options) []measurement {
	udp, tcp := datagrams(l, o), tcpStream(l, o)
	switch {
	case o.EveryTraffic && !native(l):
		return []measurement{udp, tcp}
	case l.Traffic == chain.TrafficTCP && needsThroughput(l.Requires):
		return []measurement{tcp}
	case l.Traffic == chain.TrafficTCP:
		return []measurement{crossCheck(tcp)}
	case !needsThroughput(l.Requires):
		return []measurement{crossCheck(udp)}
	case native(l):
		return []measurement{udp}
	}
	return []measurement{udp, crossCheck(tcp)}
}

// datagrams are sent as fast as the port accepts them. The joint speed of two
// threads varies much between trials, since it depends on where they run: hence
// many short trials.
func datagrams(l plan.Link, o Options) measurement {
	p := throughputParams(l, o)
	p.Duration = orElse(o.Duration, p.Duration/2)
	return measurement{tool: instrument.Draygen{Quantity: record.QThroughput}, quantity: record.QThroughput, word: "throughput", params: p,
		rounds: o.pace().streams, noWarmup: true, overhead: 200 * time.Millisecond, busy: [2]int{1, 1}}
}

// tcpStream is one TCP stream with iperf3.
func tcpStream(l plan.Link, o Options) measurement {
	return measurement{tool: instrument.Iperf3{}, quantity: record.QThroughput, word: "TCP throughput", params: throughputParams(l, o),
		overhead: 200 * time.Millisecond, busy: [2]int{1, 1}}
}

func iperf(q record.Quantity, p instrument.Params) measurement {
	return measurement{tool: instrument.Iperf{}, quantity: q, word: "cross-check by iperf", params: p,
		overhead: 200 * time.Millisecond, busy: [2]int{1, 1}}
}

// roundTrips are cross-checks with instruments that cannot measure one direction.
// They need interfaces.
func roundTrips(l plan.Link, o Options) []measurement {
	if native(l) || o.Far || l.Course != nil {
		return nil
	}
	requests := crossCheck(measurement{tool: instrument.Qperf{}, quantity: record.QRequests, word: "requests", params: requestsParams(l, o),
		overhead: 200 * time.Millisecond, busy: [2]int{1, 1}})
	if ip6(l) {
		return []measurement{requests} // sockperf has no IPv6
	}
	return []measurement{
		crossCheck(measurement{tool: instrument.Sockperf{}, quantity: record.QLatency, word: "round trips", params: pingPongParams(l, o),
			overhead: instrument.SockperfOverhead + 200*time.Millisecond, busy: [2]int{1, 1}}),
		requests,
	}
}

// ip6 reports whether the ports of the link have IPv6 addresses: all are in one
// subnet.
func ip6(l plan.Link) bool {
	return slices.ContainsFunc(l.Ends, func(e plan.End) bool { return e.IP.IsValid() && e.IP.Addr().Is6() })
}

// once makes it a single trial: its result cannot vary, or decides nothing.
func once(m measurement) measurement {
	m.rounds, m.noWarmup = 1, true
	return m
}

func crossCheck(m measurement) measurement {
	m.crossCheck = true
	return once(m)
}

// native reports whether a link port is no interface, so that only draygen can
// measure.
func native(l plan.Link) bool { return verdict.FromPlan(l).Native }

// id is the measurement's part of a trial's id.
func (m measurement) id() string {
	id := m.link.Name + "-" + string(m.quantity) + "-" + m.from.String() + "-" + m.to.String()
	if m.tool.Name() == (instrument.Iperf3{}).Name() && !m.crossCheck {
		id += "-tcp"
	}
	if m.crossCheck {
		id += "-" + m.tool.Name()
	}
	return id
}

// title is the measurement's name for users.
func (m measurement) title() string {
	what := "link"
	if m.link.Course != nil {
		what = "path"
	}
	return fmt.Sprintf("%s %s: %s %s → %s", what, m.link.Name, m.word, m.from.Function, m.to.Function)
}

func (m measurement) expect() time.Duration { return m.params.Duration + m.overhead }

func (m measurement) demand() runner.Demand {
	return runner.Demand{m.from.Function: m.busy[0]}.With(runner.Demand{m.to.Function: m.busy[1]})
}

// Estimate is the approximate duration of Links, without repeating earlier
// trials.
func Estimate(p *plan.Plan, o Options, earlier ...record.Trial) time.Duration {
	r := newRunner(o, append(items(matrix(p, o), nil), observation{links: heldLinks(p, o), rounds: intervals(p, o)}.items(o, nil)...))
	r.Done = collect(nil, earlier).done
	return r.Estimate()
}

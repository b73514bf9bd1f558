// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/probe"
)

// judgement is what the latest intervals say of a link.
type judgement struct {
	tunnel   bool  // it crosses nodes
	bridged  bool  // its ports are on a bridge
	limitsOf int64 // claims.Port.LimitsOf
	verdicts []verdict.Verdict
	why      string // there is no verdict
}

// of are the verdicts on a port's link that crosses nodes, or does not; without any, also why.
// A judgement from before the link moved, or its limits changed, says nothing.
func (j judgement) of(tunnel bool, p *claims.Port) (verdicts []verdict.Verdict, why string) {
	if j.tunnel != tunnel || j.bridged != bridged(&p.Link) || j.limitsOf != p.LimitsOf || j.why == "" && j.verdicts == nil {
		return nil, "no traffic has been measured yet"
	}
	return j.verdicts, j.why
}

// measuring asks dray-net for what it measured at one port.
type measuring func(ctx context.Context, half string, mac chain.MAC, epoch, after uint64) (*nodenet.Measured, error)

// crossings are the links that dray-net measures, by the broker's name of the link: those to other
// nodes, and those of interfaces.
type crossings map[string]*crossed

// crossed are the latest intervals of a link.
type crossed struct {
	tunnel       bool // to another node
	epoch, after uint64
	at           time.Time // of the latest interval
	begun        time.Time
	number       int // of intervals so far
	intervals    []interval
	total        []telemetry.Flow // since this daemon began
}

// interval is what both directions of a link had in two seconds.
type interval struct {
	trials []record.Trial
	flows  []telemetry.Flow
}

// silentFor is how long an interval of a link may be overdue until there is no verdict.
const silentFor = 5 * sampleEvery

var (
	errNotYet = errors.New("dray-net has not measured the link yet")
	errSilent = errors.New("nothing comes from the other end")
)

// follow gets the new intervals of a link, and forgets old ones.
func (c *crossed) follow(ctx context.Context, name string, p *claims.Port, ask measuring, now time.Time) error {
	m, err := ask(ctx, name, p.Link.Ends[p.End()].MAC, c.epoch, c.after)
	if err != nil {
		return err
	}
	if m.Epoch != c.epoch { // its numbers begin again, but what was measured before stays true
		c.epoch, c.after = m.Epoch, 0
	}
	for _, i := range m.Intervals {
		if i.Number <= c.after {
			continue
		}
		c.add(crossingOf(p, i))
		c.after = i.Number
		if i.Out.Probes+i.In.Probes > 0 {
			c.at = now
		}
	}
	switch {
	case c.at.IsZero() && now.Sub(c.begun) < 2*silentFor:
		return errNotYet
	case now.Sub(c.at) > silentFor:
		return errSilent
	}
	return nil
}

// add adds an interval.
func (c *crossed) add(ways []live.Crossing) {
	var one interval
	for _, way := range ways {
		one.trials = append(one.trials, way.Trials(c.number)...)
		one.flows = append(one.flows, way.Flow())
		c.total = sum(c.total, way.Flow())
	}
	c.number++
	c.intervals = append(c.intervals, one)
	c.intervals = c.intervals[max(0, len(c.intervals)-keepSamples):]
}

// crossingOf is an interval in the words of the chain.
func crossingOf(p *claims.Port, i probe.Interval) []live.Crossing {
	own, other := p.Link.Ends[p.End()].String(), p.Link.Ends[1-p.End()].String()
	way := func(from, to string, d probe.Direction) live.Crossing {
		c := live.Crossing{Link: p.Link.Name, From: from, To: to, Interval: i.Duration, Probes: d.Probes, Lost: d.Lost, Sent: d.Sent, Missing: d.Missing, Bytes: d.Bytes, MTU: p.Link.MTU, Full: d.Full, FullLost: d.FullLost, OneClock: i.Clock != nil && i.Clock[0] == i.Clock[1]}
		for _, delay := range d.Delays {
			c.Delays = append(c.Delays, delay)
		}
		return c
	}
	both := []live.Crossing{way(own, other, i.Out), way(other, own, i.In)}
	both[0].Rounds, both[1].Rounds = i.Rounds, i.Rounds
	return both
}

// judge judges all links. Of those that dray-net measures, it replaces what applications of this
// node report.
func (t crossings) judge(ctx context.Context, all []claims.Claim, links []live.Link, received tunnels, ask measuring, now time.Time) map[string]judgement {
	judged := map[string]judgement{}
	for i := range links {
		l := &links[i]
		name := l.Chain + "/" + l.Status.Name
		p := planned(all, name)
		_, tunnel := received.at[name]
		tunnel = tunnel || received.unknown[name] && t[name] != nil && t[name].tunnel // dray-net is away
		if p == nil || !(tunnel && p.Across != nil) && !bridged(&p.Link) {
			judged[name] = judgement{verdicts: l.Verdicts, limitsOf: generationOf(p)}
			continue
		}
		if t[name] == nil || t[name].tunnel != tunnel {
			t[name] = &crossed{begun: now, tunnel: tunnel}
		}
		judged[name] = t[name].judge(ctx, name, p, l, ask, now)
	}
	maps.DeleteFunc(t, func(name string, _ *crossed) bool {
		_, still := received.at[name]
		p := planned(all, name)
		return !still && !received.unknown[name] && (p == nil || !bridged(&p.Link))
	})
	return judged
}

// generationOf is the generation of a port's limits, if there is such a port.
func generationOf(p *claims.Port) int64 {
	if p == nil {
		return 0
	}
	return p.LimitsOf
}

// judge is the verdict on one link.
func (c *crossed) judge(ctx context.Context, name string, p *claims.Port, l *live.Link, ask measuring, now time.Time) judgement {
	j := judgement{tunnel: c.tunnel, bridged: bridged(&p.Link), limitsOf: p.LimitsOf}
	l.Verdicts = nil
	if err := c.follow(ctx, name, p, ask, now); err != nil {
		j.why = err.Error()
		return j
	}
	var trials []record.Trial
	for _, i := range c.intervals {
		trials = append(trials, i.trials...)
	}
	link := p.Link
	if c.tunnel {
		link = *p.Across
	}
	j.verdicts = verdict.JudgeProbed(link, trials)
	l.Verdicts = j.verdicts
	c.show(l)
	return j
}

// addInterfaceLinks adds the links that the broker does not know, because all their ports on this
// node are interfaces.
func addInterfaceLinks(all []claims.Claim, links []live.Link) []live.Link {
	for i := range all {
		for j := range all[i].Ports {
			c, p := &all[i], &all[i].Ports[j]
			chain := c.Namespace + "/" + p.Chain
			if bridged(&p.Link) && !slices.ContainsFunc(links, func(l live.Link) bool { return l.Chain == chain && l.Status.Name == p.Link.Name }) {
				links = append(links, live.Link{Chain: chain, Status: broker.LinkStatus{Name: p.Link.Name, Kind: broker.KindNetdev, State: broker.StateHalf}})
			}
		}
	}
	return links
}

// show completes the flows of a link, of which the function on this node reports one side. With an
// interface at one end there are no flows to complete: then all figures are dray-net's.
func (c *crossed) show(l *live.Link) {
	var last, window []telemetry.Flow
	for _, i := range c.intervals {
		last = i.flows
		for _, f := range i.flows {
			window = sum(window, f)
		}
	}
	if len(l.Status.Ends) == 0 { // the broker does not know it
		l.Status.State = broker.StateActive
	}
	if len(l.Status.Ends) < 2 {
		l.Now, l.Window, l.Total = last, window, slices.Clone(c.total)
		return
	}
	l.Now = slices.Clone(l.Now) // the watcher keeps it
	complete(l.Now, last)
	complete(l.Window, window)
	complete(l.Total, c.total)
}

// sum adds a flow to the one of its direction.
func sum(sums []telemetry.Flow, f telemetry.Flow) []telemetry.Flow {
	for i := range sums {
		if sums[i].From == f.From {
			sums[i].Add(f)
			return sums
		}
	}
	return append(sums, f)
}

// complete adds to flows what only both nodes together know: the latency, losses on the way, and
// what arrived at the other node.
func complete(flows, measured []telemetry.Flow) {
	for i := range flows {
		for _, m := range measured {
			if f := &flows[i]; f.From == m.From {
				f.Latency, f.Lost = m.Latency, f.Lost+m.Lost
				if f.Sent == 0 {
					f.Sent = m.Sent
				}
				if f.Received == 0 {
					f.Received, f.Bytes = m.Received, m.Bytes
				}
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Path is a path with what is expected of its links. Nothing is expected of its functions
// before someone measures them.
type Path struct {
	Name       string           `json:"name"`
	From       chain.End        `json:"from"`
	To         chain.End        `json:"to"`
	Steps      []chain.Step     `json:"steps"`
	Directions chain.Directions `json:"directions"`
	Load       units.Bitrate    `json:"load"` // traffic while latency and loss are measured
	GTPU       *chain.GTPU      `json:"gtpu,omitempty"`
	Requires   chain.Requires   `json:"requires"`
	Terms      []Term           `json:"terms"` // one for each step
	Evidence   []Evidence       `json:"evidence"`
}

// Term is what one link adds to a path; 0: unknown.
type Term struct {
	Link       string           `json:"link"`
	Latency    units.Duration   `json:"latency,omitempty"`
	Percentile units.Percentile `json:"percentile,omitempty"` // of the latency
	LossRatio  units.Ratio      `json:"packet_loss_ratio,omitempty"`
	Bitrate    units.Bitrate    `json:"bitrate,omitempty"`
	Source     string           `json:"source"`
}

// Through are the functions between the two ends, in order.
func (p Path) Through() []string {
	return (&chain.Path{Steps: p.Steps}).Through()
}

// Path returns the planned path of that name, or nil.
func (p *Plan) Path(name string) *Path {
	for i := range p.Paths {
		if p.Paths[i].Name == name {
			return &p.Paths[i]
		}
	}
	return nil
}

// planPath composes what is expected of a path from its links.
func (p *planner) planPath(c *chain.Path) {
	path := Path{Name: c.Name, From: c.From, To: c.To, Steps: c.Steps, Directions: c.Directions, Load: loadOf(c), GTPU: c.GTPU, Requires: c.Requires, Evidence: []Evidence{}}
	for _, s := range c.Steps {
		path.Terms = append(path.Terms, p.term(c, s.Link))
	}
	r := &c.Requires
	if r.Latency > 0 {
		path.Evidence = append(path.Evidence, path.judgeLatency())
	}
	if r.LossRatio != nil {
		path.Evidence = append(path.Evidence, path.judgeLoss())
	}
	if r.MinBitrate > 0 {
		path.Evidence = append(path.Evidence, path.judgeBitrate())
	}
	if r.MTU > 0 {
		path.Evidence = append(path.Evidence, p.plan.judgeMTU(path))
	}
	p.plan.Paths = append(p.plan.Paths, path)
	p.violatePath(c, &path)
}

// loadOf is the traffic on the path while its latency and loss are measured.
func loadOf(c *chain.Path) units.Bitrate {
	if c.HasLoad {
		return c.Load
	}
	return c.Requires.MinBitrate / 10
}

// term is what a link is expected to add, under the path's load.
func (p *planner) term(c *chain.Path, name string) Term {
	t := Term{Link: name, Percentile: share(c)}
	transport := p.inv.Transport(p.plan.Link(name).Transport)
	if transport == nil {
		t.Source = "no transport"
		return t
	}
	e := p.estimate(transport, p.needsOnPath(c, p.linkOf(name)))
	latency, why := e.queued(e.latency(float64(t.Percentile)))
	if t.Source = why; why == "" {
		t.Source = latency.source
	}
	t.Latency = e.delay()
	t.LossRatio = units.Ratio(e.lost().value)
	t.Bitrate = units.Bitrate(roundDown(e.shapedBitrate().value))
	return t
}

// needsOnPath is what a link needs of a transport under a path's load, at the path's share of
// the percentile.
func (p *planner) needsOnPath(c *chain.Path, link *chain.Link) *needs {
	l := *link
	l.Traffic, l.Load, l.HasLoad = chain.TrafficUDP, loadOf(c), true
	l.Requires = chain.Requires{Percentile: share(c), MaxBitrate: link.Requires.MaxBitrate}
	return p.needsOf(&l)
}

// delay is the latency under load; 0: unknown.
func (e estimate) delay() units.Duration {
	f, why := e.queued(e.latency(float64(e.link.Requires.Percentile)))
	if why != "" {
		return 0
	}
	return duration(math.Ceil(f.value))
}

func (p *planner) linkOf(name string) *chain.Link {
	for i := range p.chain.Links {
		if p.chain.Links[i].Name == name {
			return &p.chain.Links[i]
		}
	}
	return nil
}

// share is the percentile of each term. Of n links and functions each may be slower for
// one n-th of the packets that the path may delay: then all together are within the sum
// for the rest, however their delays depend on each other (Boole's inequality).
func share(c *chain.Path) units.Percentile {
	const precision = 1e9
	n := float64(len(c.Steps) + len(c.Through()))
	v := 100 - (100-float64(c.Requires.Percentile))/n
	return units.Percentile(math.Round(v*precision) / precision)
}

// judgeLatency adds up the links. What is left of the limit is for the functions.
func (p *Path) judgeLatency() Evidence {
	r := p.Requires
	ev := Evidence{Requirement: "latency", Required: fmt.Sprintf("≤ %v at p%v", r.Latency, r.Percentile)}
	var sum units.Duration
	for _, t := range p.Terms {
		if t.Latency == 0 {
			ev.Expected, ev.Source = unknown, fmt.Sprintf("link %s: %s", t.Link, t.Source)
			return ev
		}
		sum += min(t.Latency, math.MaxInt64/64-1)
	}
	ev.Meets = sum <= r.Latency
	ev.Expected, ev.Source = fmt.Sprint(sum), p.sumOf("latency")
	if names := p.Through(); len(names) > 0 && ev.Meets {
		ev.Expected += fmt.Sprintf(", and %v left for %s", r.Latency-sum, parse.All(names))
	}
	return ev
}

// sumOf is the source of a figure that is made of the links' own.
func (p *Path) sumOf(what string) string {
	var names []string
	for _, t := range p.Terms {
		names = append(names, t.Link)
	}
	return fmt.Sprintf("the %s of %s", what, parse.All(names))
}

// judgeLoss is the loss if each link loses its share of what arrives at it.
func (p *Path) judgeLoss() Evidence {
	limit := *p.Requires.LossRatio
	ev := Evidence{Requirement: "packet_loss_ratio", Required: fmt.Sprintf("≤ %v", limit)}
	passed := 1.0
	for _, t := range p.Terms {
		if t.LossRatio == 0 {
			ev.Expected, ev.Source = unknown, fmt.Sprintf("link %s: %s", t.Link, noEvidence)
			return ev
		}
		passed *= 1 - float64(t.LossRatio)
	}
	lost := math.Round((1-passed)*1e12) / 1e12 // without the rounding errors of the product
	ev.Expected, ev.Source, ev.Meets = lossText(lost), p.sumOf("losses"), lost <= float64(limit)
	return ev
}

// judgeBitrate takes the slowest link.
func (p *Path) judgeBitrate() Evidence {
	slowest := p.Terms[0]
	for _, t := range p.Terms {
		if t.Bitrate < slowest.Bitrate {
			slowest = t
		}
	}
	f := figure{value: float64(slowest.Bitrate)}
	if slowest.Bitrate > 0 {
		f.source = "link " + slowest.Link
	}
	ev := judgeRate("min_bitrate", p.Requires.MinBitrate, f, slowest.Bitrate)
	if !f.known() {
		ev.Source = fmt.Sprintf("link %s: %s", slowest.Link, noEvidence)
	}
	return ev
}

func (p *planner) violatePath(c *chain.Path, path *Path) {
	for _, ev := range path.Evidence {
		if ev.Meets {
			continue
		}
		v := Violation{
			Subject:    "path " + path.Name,
			Constraint: ev.Requirement + " " + ev.Required,
			Reason:     fmt.Sprintf("its links are expected to give %s (%s)", ev.Expected, ev.Source),
			Fix:        ev.allow() + ", use faster links, or set on_infeasible: warn under policy to measure it anyway",
			Pos:        at(c.Requires.Pos, ev.Requirement, c.Pos),
		}
		if ev.Expected == unknown {
			v.Reason = "its links have no evidence for this: " + ev.Source
			v.Fix = "ask for less, or set on_infeasible: warn under policy to measure it anyway"
		}
		if ev.Requirement == "mtu" {
			v.Reason, v.Fix = fmt.Sprintf("a user's packet of at most %s fits into %s", ev.Expected, ev.Source), p.plan.widen(*path)+", or require less"
		}
		p.violate(v)
	}
}

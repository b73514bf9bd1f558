// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
	"time"
)

// nowhere is the node of a function that is not placed yet.
const nowhere = -1

// state is a placement under construction.
type state struct {
	*Model
	routes [][]Route
	every  []int // node
	// nodesOn are the nodes of each host.
	nodesOn [][]int
	of      [][]int // links of each function
	at      []int   // node of each function, or nowhere
	cpus    []int   // free, by node
	memory  []uint64
	on      []int    // functions, by host
	used    []uint64 // bit/s of each line that links take
	links   []joined
	paths   []time.Duration // the least delay of each path so far
	// cost is exact for links with all ends placed, and the least possible for others.
	cost  Cost
	count int // functions placed
	looks int // at nodes for functions, pairs of ends of links, and lines between these
}

// joined is what one link costs now.
type joined struct {
	cost  Cost
	way   *Way  // nil: not all ends are placed
	lines []int // between its hosts
	full  bool  // a requirement of it has no evidence, so the lines do not carry it
	// delays are what the link adds to each of its paths, at least.
	delays []time.Duration
}

func newState(m *Model) *state {
	s := &state{Model: m, routes: m.Routes(), of: make([][]int, len(m.Functions)), at: make([]int, len(m.Functions)),
		cpus: make([]int, len(m.Nodes)), memory: make([]uint64, len(m.Nodes)), on: make([]int, m.Hosts),
		used: make([]uint64, len(m.Lines)), links: make([]joined, len(m.Links)), paths: make([]time.Duration, len(m.Paths))}
	for f := range s.at {
		s.at[f] = nowhere
	}
	s.nodesOn = make([][]int, m.Hosts)
	for h := range s.nodesOn {
		s.nodesOn[h] = m.nodesOf(h)
	}
	for n, node := range m.Nodes {
		s.every = append(s.every, n)
		s.cpus[n], s.memory[n] = node.CPUs, node.Memory
	}
	for i, l := range m.Links {
		for _, f := range l.Ends {
			s.of[f] = append(s.of[f], i)
		}
		s.links[i] = joined{cost: l.least(), delays: l.leastDelays(l.Local, l.Apart, 0)}
		s.cost = s.cost.plus(s.links[i].cost)
		s.delay(&m.Links[i], s.links[i].delays, 1)
	}
	return s
}

// least is the cost of a link that is free of all limits.
func (l *Link) least() Cost {
	best, found := Cost{}, false
	consider := func(w *Way) {
		if c := (Cost{Slow: w.Slow}); !found || c.Less(best) {
			best, found = c, true
		}
	}
	if l.Local != nil {
		consider(l.Local)
	}
	for i := range l.Apart {
		consider(&l.Apart[i])
	}
	return best
}

// hostOf is the host of a placed function.
func (s *state) hostOf(f int) int { return s.Nodes[s.at[f]].Host }

// fits reports whether the node has room for the function, and the function may be
// there.
func (s *state) fits(f, node int) bool { return s.obstacle(f, node) == 0 }

// obstacle is why the function cannot be on the node, links aside.
func (s *state) obstacle(f, node int) Kind {
	s.looks++
	fn := &s.Functions[f]
	switch {
	case !fn.allows(node):
		return KindPin
	case fn.CPUs > s.cpus[node]:
		return KindCPUs
	case fn.Memory > s.memory[node]:
		return KindMemory
	}
	for _, g := range fn.Against {
		if s.at[g] != nowhere && s.hostOf(g) == s.Nodes[node].Host {
			return KindCPUs
		}
	}
	return 0
}

// put places the function on a node that it fits; false: one of its links cannot be
// realised then, and nothing has changed.
func (s *state) put(f, node int) bool {
	s.move(f, node, 1)
	for i, l := range s.of[f] {
		if !s.join(l) {
			s.move(f, node, -1)
			for _, l := range s.of[f][:i+1] {
				s.join(l)
			}
			return false
		}
	}
	return true
}

// take removes the function from its node.
func (s *state) take(f int) {
	s.move(f, s.at[f], -1)
	for _, l := range s.of[f] {
		s.join(l)
	}
}

// move books the function in or out.
func (s *state) move(f, node, sign int) {
	fn, host := &s.Functions[f], s.Nodes[node].Host
	if sign > 0 {
		s.at[f] = node
		s.cpus[node], s.memory[node] = s.cpus[node]-fn.CPUs, s.memory[node]-fn.Memory
		if s.on[host]++; s.on[host] == 1 {
			s.cost.Hosts++
		}
		s.count++
		return
	}
	s.at[f] = nowhere
	s.cpus[node], s.memory[node] = s.cpus[node]+fn.CPUs, s.memory[node]+fn.Memory
	if s.on[host]--; s.on[host] == 0 {
		s.cost.Hosts--
	}
	s.count--
}

// join computes the link's cost again; false: it cannot be realised, or a line is full.
func (s *state) join(i int) bool {
	l, old := &s.Links[i], &s.links[i]
	s.cost = s.cost.minus(old.cost)
	s.book(old, false)
	s.delay(l, old.delays, -1)
	now, ok := s.evaluate(l)
	s.links[i] = now
	s.cost = s.cost.plus(now.cost)
	inTime := s.delay(l, now.delays, 1)
	return s.book(&s.links[i], true) && ok && (inTime || s.Unmet)
}

// book adds or removes the link's part of its lines; false: a line carries more than
// its rate.
func (s *state) book(j *joined, add bool) bool {
	if j.way == nil || j.full {
		return true
	}
	ok := true
	for _, l := range j.lines {
		if !add {
			s.used[l] -= j.way.MinRate
			continue
		}
		s.used[l] += j.way.MinRate
		ok = ok && (s.Lines[l].Rate == 0 || s.used[l] <= s.Lines[l].Rate)
	}
	return ok
}

// evaluate is the link's cost for the ends that are placed.
func (s *state) evaluate(l *Link) (joined, bool) {
	p := s.span(l)
	switch {
	case !p.connected:
		return l.unplaced(), false
	case p.hosts > 1:
		return s.apart(l, p)
	case p.placed < len(l.Ends):
		return l.unplaced(), true
	case l.Local == nil:
		return l.unplaced(), false
	}
	j := joined{cost: Cost{Slow: l.Local.Slow}, way: l.Local, delays: l.Local.Delays}
	if !l.Local.carries(0, 0) {
		j.cost.Unmet, j.cost.Over, j.full = 1, l.Local.over(0), true
	}
	return j, s.Unmet || !j.full
}

// apart is the fastest way between hosts with evidence, or the fastest of all. The lines
// carry the link only once all its ends are placed: until then its way may change.
func (s *state) apart(l *Link, p span) (joined, bool) {
	for w := range l.Apart {
		way := &l.Apart[w]
		if !way.carries(p.delay, p.rate) {
			continue
		}
		j := joined{cost: Cost{Slow: way.Slow, Delay: p.delay}, delays: l.leastDelays(nil, l.Apart, p.delay)}
		if p.placed == len(l.Ends) {
			j.way, j.lines, j.delays = way, p.lines, way.delays(p.delay)
		}
		return j, true
	}
	if !s.Unmet || len(l.Apart) == 0 {
		return l.unplaced(), false
	}
	way := &l.Apart[0]
	return joined{cost: Cost{Unmet: 1, Over: way.over(p.delay), Slow: way.Slow, Delay: p.delay}, way: way, lines: p.lines, full: true, delays: way.delays(p.delay)}, true
}

// span is what the placed ends of a link are apart.
type span struct {
	placed, hosts int
	connected     bool
	delay         time.Duration // the longest between two of them
	rate          uint64        // the lowest; 0: no limit
	lines         []int
}

func (s *state) span(l *Link) span {
	s.looks += 4 // a link alone takes as long
	p := span{connected: true}
	for i, f := range l.Ends {
		if s.at[f] == nowhere {
			continue
		}
		s.looks += i
		p.placed++
		first := true
		for _, g := range l.Ends[:i] {
			if s.at[g] == nowhere {
				continue
			}
			if s.hostOf(g) == s.hostOf(f) {
				first = false
				continue
			}
			route := &s.routes[s.hostOf(f)][s.hostOf(g)]
			s.looks += len(p.lines) * len(route.Lines)
			p.add(route)
		}
		if first {
			p.hosts++
		}
	}
	return p
}

func (p *span) add(r *Route) {
	if len(r.Lines) == 0 {
		p.connected = false
	}
	p.delay = max(p.delay, r.Delay)
	if r.Rate > 0 && (p.rate == 0 || r.Rate < p.rate) {
		p.rate = r.Rate
	}
	if p.lines == nil {
		p.lines = r.Lines
		return
	}
	joint := slices.Clone(p.lines)
	for _, l := range r.Lines {
		if !slices.Contains(joint, l) {
			joint = append(joint, l)
		}
	}
	p.lines = joint
}

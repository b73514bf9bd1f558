// SPDX-License-Identifier: Apache-2.0

package place

import "time"

// Alternative is another host for one function, with everything else where it is.
type Alternative struct {
	Host int
	// Lost is why the function cannot be there; 0: it can, and costs More.
	Lost Limit
	More Cost
	// Links are those that would get another cost, if it can be there.
	Links []int
}

// Alternatives are those of each function of a placement, by host.
func Alternatives(m *Model, p *Placement) [][]Alternative {
	s := newState(m)
	for f, node := range p.Node {
		s.put(f, node)
	}
	all := make([][]Alternative, len(m.Functions))
	for f, node := range p.Node {
		cost := s.cost
		own := s.hostOf(f)
		s.take(f)
		for h := range m.Hosts {
			if h != own {
				all[f] = append(all[f], s.alternative(f, h, cost))
			}
		}
		s.put(f, node)
	}
	return all
}

// alternative is the cheapest node of a host for a function, or what is in the way of the
// last one that is.
func (s *state) alternative(f, host int, cost Cost) Alternative {
	best := Alternative{Host: host, Lost: Limit{KindPin, f}}
	for _, n := range s.nodesOf(host) {
		if kind := s.obstacle(f, n); kind != 0 {
			best.loses(s.limitOf(kind, f, host))
			continue
		}
		if !s.put(f, n) {
			best.loses(s.broken(f, n))
			continue
		}
		more := s.cost.minus(cost)
		s.take(f)
		if best.Lost.Kind != 0 || more.Less(best.More) {
			best.Lost, best.More, best.Links = Limit{}, more, s.dearer(f, n)
		}
	}
	return best
}

// loses notes what is in the way, if no node of the host is better.
func (a *Alternative) loses(l Limit) {
	if a.Lost.Kind != 0 && l.Kind >= a.Lost.Kind {
		a.Lost = l
	}
}

func (s *state) limitOf(kind Kind, f, host int) Limit {
	if kind == KindPin {
		return Limit{kind, f}
	}
	return Limit{kind, host}
}

// broken is the link that cannot be realised with the function on the node, or that finds
// no room on a line, or else the path that takes too long.
func (s *state) broken(f, node int) Limit {
	s.at[f] = node
	defer func() { s.at[f] = nowhere }()
	for _, i := range s.of[f] {
		now, ok := s.evaluate(&s.Links[i])
		if !ok {
			return Limit{KindLink, i}
		}
		for _, l := range now.lines {
			if rate := s.Lines[l].Rate; now.way != nil && rate > 0 && s.used[l]+now.way.MinRate > rate {
				return Limit{KindRate, s.Lines[l].Group}
			}
		}
	}
	return s.latePath(f)
}

// latePath is a path over links of the function that takes too long.
func (s *state) latePath(f int) Limit {
	added := make([]time.Duration, len(s.Paths))
	for _, i := range s.of[f] {
		l := &s.Links[i]
		now, _ := s.evaluate(l)
		for p, path := range l.Paths {
			added[path] += now.delays[p] - s.links[i].delays[p]
			if s.paths[path]+added[path] > s.Paths[path].MaxDelay {
				return Limit{KindPath, path}
			}
		}
	}
	return Limit{}
}

// dearer are the links that cost more than their least with the function on the node.
func (s *state) dearer(f, node int) []int {
	s.at[f] = node
	defer func() { s.at[f] = nowhere }()
	var links []int
	for _, i := range s.of[f] {
		if now, _ := s.evaluate(&s.Links[i]); s.Links[i].least().Less(now.cost) {
			links = append(links, i)
		}
	}
	return links
}

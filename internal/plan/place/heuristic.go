// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

const (
	attempts = 8      // orders in which functions are placed, most of them random
	rounds   = 12_000 // of placing a few functions again
	ruin     = 8      // functions that are placed again at once
)

// construct places one function after the other where it costs least, in several orders;
// nil: it found no placement.
func construct(m *Model) *state {
	var best *state
	random := rand.New(rand.NewPCG(1, uint64(len(m.Functions)))) // the same every time
	looks := 0
	for attempt := range attempts {
		s := newState(m)
		if s.greedy(order(s, attempt, random)) && (best == nil || s.cost.Less(best.cost)) {
			best = s
		}
		if looks += s.looks; looks > mostLooks {
			break
		}
	}
	return best
}

// improve takes a few functions that links join from their nodes, places them again where
// each costs least, and goes back unless that is better or equal; again and again.
func (s *state) improve() {
	random := rand.New(rand.NewPCG(2, uint64(len(s.Functions))))
	for round := 0; round < rounds && s.looks < mostLooks; round++ {
		was, cost := slices.Clone(s.at), s.cost
		some := s.some(random)
		for _, f := range some {
			s.take(f)
		}
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		placed := true
		for _, f := range some {
			placed = placed && s.putCheapest(f)
		}
		if placed && !cost.Less(s.cost) {
			continue
		}
		for _, f := range some {
			if s.at[f] != nowhere {
				s.take(f)
			}
		}
		for _, f := range some {
			s.put(f, was[f])
		}
	}
	for better := true; better && s.looks < mostLooks; {
		better = false
		for f := range s.Functions {
			better = s.moveBetter(f) || better
		}
	}
}

// moveBetter puts the function where it costs least; false: it is there.
func (s *state) moveBetter(f int) bool {
	was, cost := s.at[f], s.cost
	s.take(f)
	if s.putOn(f, s.options(f)) {
		if s.cost.Less(cost) {
			return true
		}
		s.take(f)
	}
	s.put(f, was)
	return false
}

// some are functions that links join to a random one, and those on the same nodes.
func (s *state) some(random *rand.Rand) []int {
	all := []int{random.IntN(len(s.at))}
	add := func(f int) {
		if len(all) < ruin && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	for i := 0; i < len(all) && len(all) < ruin; i++ {
		for _, l := range s.of[all[i]] {
			for _, f := range s.Links[l].Ends {
				add(f)
			}
		}
		for f, at := range s.at {
			if at == s.at[all[i]] {
				add(f)
			}
		}
	}
	return all
}

// order is the order of an attempt: along the links from the function that needs most,
// by need alone, along the links from one end, then random.
func order(s *state, attempt int, random *rand.Rand) []int {
	all := everyFunction(s.Model)
	need := func(f, g int) int {
		a, b := &s.Functions[f], &s.Functions[g]
		return cmp.Or(cmp.Compare(freedom(a), freedom(b)), cmp.Compare(b.CPUs, a.CPUs), cmp.Compare(b.Memory, a.Memory), cmp.Compare(f, g))
	}
	switch attempt {
	case 0:
		slices.SortFunc(all, need)
		return s.along(all)
	case 1:
		slices.SortFunc(all, need)
		return all
	case 2:
		return s.along(all)
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return s.along(all)
}

// freedom is how many nodes a function may be on; 1<<30: any.
func freedom(f *Function) int {
	if f.Nodes == nil {
		return 1 << 30
	}
	return len(f.Nodes)
}

// along orders functions so that each comes after one to which a link joins it. The first of
// each group of joined functions is the first in the given order.
func (s *state) along(first []int) []int {
	seen := make([]bool, len(first))
	var out []int
	for _, start := range first {
		if !seen[start] {
			seen[start] = true
			out = append(out, start)
		}
		for i := len(out) - 1; i < len(out); i++ {
			for _, l := range s.of[out[i]] {
				for _, g := range s.Links[l].Ends {
					if !seen[g] {
						seen[g] = true
						out = append(out, g)
					}
				}
			}
		}
	}
	return out
}

// greedy places the functions in that order; if one fits nowhere, it takes functions out
// of the way, each once.
func (s *state) greedy(order []int) bool {
	moved := make([]bool, len(order))
	for queue := order; len(queue) > 0; {
		f := queue[0]
		queue = queue[1:]
		if s.putCheapest(f) {
			continue
		}
		out := s.makeRoom(f, moved)
		if out == nil {
			return false
		}
		queue = append(slices.Clone(out), queue...)
	}
	return true
}

// putCheapest prefers the hosts of functions to which links join this one: elsewhere, all
// its links are between hosts.
func (s *state) putCheapest(f int) bool {
	return s.putOn(f, s.optionsOn(f, s.near(f))) || s.putOn(f, s.options(f))
}

// putOn puts the function on the first node that takes it.
func (s *state) putOn(f int, options []option) bool {
	return slices.ContainsFunc(options, func(o option) bool { return s.put(f, o.node) })
}

// near are the nodes of the hosts of functions to which links join this one.
func (s *state) near(f int) []int {
	var nodes []int
	for _, l := range s.of[f] {
		for _, g := range s.Links[l].Ends {
			if s.at[g] != nowhere && !slices.Contains(nodes, s.at[g]) {
				nodes = append(nodes, s.nodesOn[s.hostOf(g)]...)
			}
		}
	}
	return nodes
}

// makeRoom puts the function on a node from which it takes the functions that need
// least. It returns these; nil: no node can be made free.
func (s *state) makeRoom(f int, moved []bool) []int {
	for node := range s.Nodes {
		if !s.Functions[f].allows(node) {
			continue
		}
		var there, out []int
		for g, at := range s.at {
			if at == node && !moved[g] {
				there = append(there, g)
			}
		}
		slices.SortFunc(there, func(g, h int) int {
			return cmp.Or(cmp.Compare(s.Functions[g].CPUs, s.Functions[h].CPUs), cmp.Compare(g, h))
		})
		for _, g := range there {
			s.take(g)
			out = append(out, g)
			if s.fits(f, node) && s.put(f, node) {
				for _, g := range out {
					moved[g] = true
				}
				return out
			}
		}
		for _, g := range slices.Backward(out) {
			s.put(g, node)
		}
	}
	return nil
}

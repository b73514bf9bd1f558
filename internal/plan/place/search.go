// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"
)

// Up to this size the placement is optimal, or proven impossible.
const (
	ExactFunctions = 12
	ExactHosts     = 6
)

const (
	exactSteps = 500_000 // some seconds; no model of 12 functions on 6 hosts in our tests needs a tenth of it
	// largeLooks bound the search for something better than the heuristic's result: each
	// step looks at every function on every node.
	largeLooks = 1_000_000
	// mostLooks bound each part of a search, whatever the links are: one to three seconds.
	// 200 functions on 50 hosts need half of it.
	mostLooks = 50_000_000
)

// Placement is the node of each function.
type Placement struct {
	Node []int
	Cost Cost
	// Bound is a cost that no placement beats: Cost, if Optimal.
	Bound   Cost
	Optimal bool
}

// search is branch and bound: it places the function with the fewest nodes left, and
// leaves a branch that cannot beat the best placement.
type search struct {
	*state
	best  *Placement // nil: none found
	first bool       // stop at the first placement
	steps int        // left
	most  int        // looks
	twins [][]bool   // hosts that can be exchanged
}

// Solve finds a placement, nil: there is none. proven says that the answer is certain:
// no placement exists, or the placement is Optimal.
func Solve(m *Model) (p *Placement, proven bool) {
	if hopeless(m) {
		return nil, true
	}
	q := &search{state: newState(m), steps: exactSteps, most: mostLooks, twins: twins(m)}
	if s := construct(m); s != nil {
		if !small(m) {
			s.improve()
		}
		q.best = s.placement()
	}
	if !small(m) {
		q.steps = largeLooks / (len(m.Functions) * len(m.Nodes))
	}
	complete := q.branch()
	if q.best == nil {
		return nil, complete
	}
	q.best.Bound, q.best.Optimal = q.best.Cost, complete
	if !complete {
		q.best.Bound = bound(m)
		q.best.Optimal = !q.best.Bound.Less(q.best.Cost)
	}
	return q.best, q.best.Optimal
}

func (s *state) placement() *Placement {
	return &Placement{Node: slices.Clone(s.at), Cost: s.cost}
}

func small(m *Model) bool { return len(m.Functions) <= ExactFunctions && m.Hosts <= ExactHosts }

// Possible reports whether the model has a placement. For a large model, false says only
// that none was found.
func Possible(m *Model) bool { return NewEffort().Possible(m) }

// hopeless finds what needs no search: a function that fits nowhere, or too little of
// everything.
func hopeless(m *Model) bool {
	var cpus, memory uint64
	for _, n := range m.Nodes {
		cpus, memory = cpus+uint64(n.CPUs), memory+n.Memory
	}
	s := newState(m)
	for f := range m.Functions {
		if len(s.choices(f)) == 0 {
			return true
		}
	}
	return m.wanted() > cpus || m.asked() > memory
}

// choices are the nodes that the function fits.
func (s *state) choices(f int) []int {
	var nodes []int
	for n := range s.Nodes {
		if s.fits(f, n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// branch places the remaining functions; false: it ran out of steps or looks.
func (q *search) branch() bool {
	if q.count == len(q.Functions) {
		if q.best == nil || q.cost.Less(q.best.Cost) {
			q.best = q.placement()
		}
		return true
	}
	if q.steps--; q.steps < 0 || q.looks > q.most {
		return false
	}
	f, options, least := q.next()
	if f < 0 || q.best != nil && !q.cost.plus(least).Less(q.best.Cost) {
		return true
	}
	for _, o := range q.distinct(options) {
		if q.best != nil && q.first {
			return true
		}
		if !q.put(f, o.node) {
			continue
		}
		complete := true
		if q.best == nil || q.cost.Less(q.best.Cost) {
			complete = q.branch()
		}
		if q.take(f); !complete {
			return false
		}
	}
	return true
}

// option is a node for a function, and what it adds to the cost.
type option struct {
	node int
	adds Cost
	// own is the part that no other function adds too: neither a host's first use, nor what
	// a link costs more of which another end comes first.
	own Cost
}

// next is the function with the fewest nodes left, and those nodes, cheapest first. least
// is what the functions that are not placed add to the cost in any case. f is negative
// if one of them fits nowhere.
func (q *search) next() (f int, options []option, least Cost) {
	f = -1
	for g := range q.Functions {
		if q.at[g] != nowhere {
			continue
		}
		at := q.options(g)
		if len(at) == 0 {
			return -1, nil, Cost{}
		}
		own := at[0].own
		for _, o := range at[1:] {
			if o.own.Less(own) {
				own = o.own
			}
		}
		least = least.plus(own)
		if f < 0 || len(at) < len(options) || len(at) == len(options) && q.before(g, f) {
			f, options = g, at
		}
	}
	return f, options, least
}

// before prefers functions that need more, and that are joined to what is placed.
func (q *search) before(g, f int) bool {
	a, b := &q.Functions[g], &q.Functions[f]
	return cmp.Or(cmp.Compare(q.neighbours(f), q.neighbours(g)), cmp.Compare(b.CPUs, a.CPUs), cmp.Compare(b.Memory, a.Memory)) < 0
}

// neighbours counts the function's links to what is placed.
func (q *search) neighbours(f int) int {
	n := 0
	for _, l := range q.of[f] {
		if slices.ContainsFunc(q.Links[l].Ends, func(g int) bool { return q.at[g] != nowhere }) {
			n++
		}
	}
	return n
}

// options are the nodes where the function can be, with what each adds at least,
// cheapest first.
func (s *state) options(f int) []option { return s.optionsOn(f, s.every) }

// optionsOn are the options among these nodes.
func (s *state) optionsOn(f int, nodes []int) []option {
	var all []option
	for _, n := range nodes {
		if !s.fits(f, n) {
			continue
		}
		if adds, own, ok := s.adds(f, n); ok {
			all = append(all, option{n, adds, own})
		}
	}
	slices.SortStableFunc(all, func(a, b option) int {
		switch {
		case a.adds.Less(b.adds):
			return -1
		case b.adds.Less(a.adds):
			return 1
		}
		return 0
	})
	return all
}

// adds is what the function on the node adds to the cost, at least; false: one of its
// links cannot be realised. It changes nothing.
func (s *state) adds(f, node int) (sum, own Cost, ok bool) {
	s.at[f] = node
	defer func() { s.at[f] = nowhere }()
	for _, i := range s.of[f] {
		now, ok := s.evaluate(&s.Links[i])
		if !ok || !s.room(&now) {
			return Cost{}, Cost{}, false
		}
		more := now.cost.minus(s.links[i].cost)
		sum = sum.plus(more)
		if s.owns(&s.Links[i], f) {
			own = own.plus(more)
		}
	}
	if s.on[s.Nodes[node].Host] == 0 {
		sum.Hosts++
	}
	return sum, own, true
}

// owns reports whether no end of the link before the function's is unplaced: of several,
// only the first owns what the link costs more.
func (s *state) owns(l *Link, f int) bool {
	return !slices.ContainsFunc(l.Ends[:slices.Index(l.Ends, f)], func(g int) bool { return s.at[g] == nowhere })
}

// room reports whether the lines have room for a link that is not booked yet.
func (s *state) room(j *joined) bool {
	if j.way == nil || j.full {
		return true
	}
	for _, l := range j.lines {
		if rate := s.Lines[l].Rate; rate > 0 && s.used[l]+j.way.MinRate > rate {
			return false
		}
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"
	"time"
)

// Route is how packets get from one host to another: with the least delay, then over
// the fewest lines, then without the line named last. No two routes are equal in all of
// that, so the rest of a route is the route from there, and the way back is the same.
type Route struct {
	Lines []int // none: the hosts are not connected
	Delay time.Duration
	Rate  uint64 // of the slowest line; 0: no limit
}

// Routes are those between all hosts, by host.
func (m *Model) Routes() [][]Route {
	routes := make([][]Route, m.Hosts)
	for from := range routes {
		routes[from] = m.routesFrom(from)
	}
	return routes
}

// routesFrom is Dijkstra's algorithm over a graph so small that it needs no heap.
func (m *Model) routesFrom(from int) []Route {
	vertices := m.Hosts
	for _, l := range m.Lines {
		vertices = max(vertices, l.Ends[0]+1, l.Ends[1]+1)
	}
	routes, done := make([]Route, vertices), make([]bool, vertices)
	near := make([][]int, vertices)
	for i, l := range m.Lines {
		near[l.Ends[0]], near[l.Ends[1]] = append(near[l.Ends[0]], i), append(near[l.Ends[1]], i)
	}
	reached := func(v int) bool { return v == from || len(routes[v].Lines) > 0 }
	for {
		next := -1
		for v := range routes {
			if !done[v] && reached(v) && (next < 0 || shorter(routes[v], routes[next])) {
				next = v
			}
		}
		if next < 0 {
			return routes[:m.Hosts]
		}
		done[next] = true
		for _, i := range near[next] {
			l := m.Lines[i]
			other := l.Ends[0] + l.Ends[1] - next
			if longer := routes[next].over(i, l); !done[other] && (!reached(other) || shorter(longer, routes[other])) {
				routes[other] = longer
			}
		}
	}
}

func shorter(a, b Route) bool {
	order := cmp.Or(cmp.Compare(a.Delay, b.Delay), cmp.Compare(len(a.Lines), len(b.Lines)))
	if order == 0 {
		order = slices.Compare(lastFirst(a.Lines), lastFirst(b.Lines))
	}
	return order < 0
}

func lastFirst(lines []int) []int {
	sorted := slices.Sorted(slices.Values(lines))
	slices.Reverse(sorted)
	return sorted
}

// over is the route with one more line.
func (r Route) over(i int, l Line) Route {
	rate := r.Rate
	if l.Rate > 0 && (rate == 0 || l.Rate < rate) {
		rate = l.Rate
	}
	return Route{append(slices.Clone(r.Lines), i), r.Delay + l.Delay, rate}
}

// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"
)

// distinct leaves out nodes that another option stands for: one that is as empty on the
// same host, or on an empty host with which its own can be exchanged.
func (q *search) distinct(options []option) []option {
	var kept []option
	for _, o := range options {
		if !slices.ContainsFunc(kept, func(k option) bool { return q.same(o.node, k.node) }) {
			kept = append(kept, o)
		}
	}
	return kept
}

func (q *search) same(a, b int) bool {
	if q.cpus[a] != q.cpus[b] || q.memory[a] != q.memory[b] || q.Nodes[a].CPUs != q.Nodes[b].CPUs || q.Nodes[a].Memory != q.Nodes[b].Memory {
		return false
	}
	for f := range q.Functions {
		if q.at[f] == nowhere && q.Functions[f].allows(a) != q.Functions[f].allows(b) {
			return false
		}
	}
	ha, hb := q.Nodes[a].Host, q.Nodes[b].Host
	return ha == hb || q.on[ha] == 0 && q.on[hb] == 0 && q.twins[ha][hb]
}

// twins are the pairs of hosts that can be exchanged: their nodes are equal, no function
// tells them apart, and exchanging their lines changes no line.
func twins(m *Model) [][]bool {
	all := make([][]bool, m.Hosts)
	for a := range all {
		all[a] = make([]bool, m.Hosts)
		for b := range a {
			same := m.exchangeable(a, b)
			all[a][b], all[b][a] = same, same
		}
	}
	return all
}

func (m *Model) exchangeable(a, b int) bool {
	na, nb := m.nodesOf(a), m.nodesOf(b)
	if len(na) != len(nb) {
		return false
	}
	for i := range na {
		x, y := m.Nodes[na[i]], m.Nodes[nb[i]]
		if x.CPUs != y.CPUs || x.Memory != y.Memory {
			return false
		}
		for f := range m.Functions {
			if m.Functions[f].allows(na[i]) != m.Functions[f].allows(nb[i]) {
				return false
			}
		}
	}
	return slices.Equal(m.linesWith(a, b), m.linesWith(b, a))
}

func (m *Model) nodesOf(host int) []int {
	var nodes []int
	for n := range m.Nodes {
		if m.Nodes[n].Host == host {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// linesWith are the lines after host a has the name b and vice versa, in a fixed order.
func (m *Model) linesWith(a, b int) []Line {
	var lines []Line
	name := func(v int) int {
		switch {
		case a < b && v == a:
			return b
		case a < b && v == b:
			return a
		}
		return v
	}
	for _, l := range m.Lines {
		x, y := name(l.Ends[0]), name(l.Ends[1])
		lines = append(lines, Line{Ends: [2]int{min(x, y), max(x, y)}, Rate: l.Rate, Delay: l.Delay})
	}
	slices.SortFunc(lines, func(x, y Line) int {
		return cmp.Or(cmp.Compare(x.Ends[0], y.Ends[0]), cmp.Compare(x.Ends[1], y.Ends[1]), cmp.Compare(x.Rate, y.Rate), cmp.Compare(x.Delay, y.Delay))
	})
	return lines
}

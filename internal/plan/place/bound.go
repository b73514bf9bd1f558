// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"
)

// bound is a cost that no placement beats. Every link costs at least its fastest way; and
// functions that are joined and need several hosts have links between them.
func bound(m *Model) Cost {
	total := Cost{Hosts: m.fewestHosts(everyFunction(m))}
	for _, part := range m.parts() {
		total = total.plus(m.boundOf(part))
	}
	return total
}

func everyFunction(m *Model) []int {
	all := make([]int, len(m.Functions))
	for f := range all {
		all[f] = f
	}
	return all
}

// boundOf is the bound of the links of functions that are joined, directly or not.
func (m *Model) boundOf(part []int) Cost {
	var sum Cost
	var more []int // what each link costs more between hosts than on one
	for i := range m.Links {
		l := &m.Links[i]
		if !slices.Contains(part, l.Ends[0]) {
			continue
		}
		sum = sum.plus(l.least())
		switch {
		case len(l.Ends) < 2:
		case l.Local == nil || len(l.Apart) == 0:
			more = append(more, 0)
		default:
			more = append(more, max(0, l.Apart[0].Slow-l.Local.Slow))
		}
	}
	slices.Sort(more)
	for i := range min(len(more), m.crossings(part)) {
		sum.Slow += more[i]
	}
	return sum
}

// crossings is how many links between hosts the part has at least: k hosts are joined by
// no fewer links than a tree has, and a link with n ends counts for n−1 of these.
func (m *Model) crossings(part []int) int {
	ends := 2
	for i := range m.Links {
		ends = max(ends, len(m.Links[i].Ends))
	}
	return (m.fewestHosts(part) - 1 + ends - 2) / (ends - 1)
}

// fewestHosts is how many hosts the functions need at least for their CPUs and memory.
func (m *Model) fewestHosts(functions []int) int {
	cpus, memory := make([]uint64, m.Hosts), make([]uint64, m.Hosts)
	for _, n := range m.Nodes {
		cpus[n.Host], memory[n.Host] = cpus[n.Host]+uint64(n.CPUs), memory[n.Host]+n.Memory
	}
	var wanted, asked uint64
	for _, f := range functions {
		wanted, asked = wanted+uint64(m.Functions[f].CPUs), asked+m.Functions[f].Memory
	}
	return max(1, fewest(cpus, wanted), fewest(memory, asked))
}

// fewest is how many of the sizes are needed for a sum.
func fewest(sizes []uint64, sum uint64) int {
	slices.SortFunc(sizes, func(a, b uint64) int { return cmp.Compare(b, a) })
	n := 0
	for _, size := range sizes {
		if sum == 0 {
			break
		}
		sum -= min(sum, size)
		n++
	}
	return n
}

// parts are the functions that links join, directly or through others.
func (m *Model) parts() [][]int {
	part := make([]int, len(m.Functions))
	for f := range part {
		part[f] = f
	}
	for changed := true; changed; {
		changed = false
		for i := range m.Links {
			ends := m.Links[i].Ends
			for _, f := range ends {
				if part[f] != part[ends[0]] {
					low := min(part[f], part[ends[0]])
					part[f], part[ends[0]], changed = low, low, true
				}
			}
		}
	}
	byPart := map[int][]int{}
	var order []int
	for f, p := range part {
		if byPart[p] == nil {
			order = append(order, p)
		}
		byPart[p] = append(byPart[p], f)
	}
	var all [][]int
	for _, p := range order {
		all = append(all, byPart[p])
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// random is a small model, of which about a third cannot be placed.
func random(r *rand.Rand, functions, hosts int) *Model {
	m := &Model{Hosts: hosts, Unmet: r.IntN(4) == 0}
	for h := range hosts {
		for range 1 + r.IntN(2) {
			m.Nodes = append(m.Nodes, Node{Host: h, CPUs: 1 + r.IntN(4), Memory: uint64(2 + r.IntN(8))})
		}
		for g := range h {
			if r.IntN(5) > 0 {
				m.Lines = append(m.Lines, Line{Ends: [2]int{g, h}, Rate: uint64(r.IntN(4) * 10), Delay: time.Duration(r.IntN(6)), Group: len(m.Lines)})
			}
		}
	}
	for f := range functions {
		fn := Function{CPUs: r.IntN(3), Memory: uint64(r.IntN(4))}
		if r.IntN(4) == 0 {
			for n := range m.Nodes {
				if r.IntN(2) == 0 {
					fn.Nodes = append(fn.Nodes, n)
				}
			}
		}
		if f > 0 && r.IntN(8) == 0 {
			g := r.IntN(f)
			fn.Against = []int{g}
			m.Functions[g].Against = append(m.Functions[g].Against, f)
		}
		m.Functions = append(m.Functions, fn)
	}
	for f := 1; f < functions; f++ {
		l := Link{Ends: []int{r.IntN(f), f}}
		for range r.IntN(3) {
			if g := r.IntN(f); !slices.Contains(l.Ends, g) {
				l.Ends = append(l.Ends, g)
			}
		}
		if r.IntN(10) > 0 {
			l.Local = &Way{Slow: 1 + r.IntN(9), Never: r.IntN(20) == 0}
		}
		for range r.IntN(3) {
			l.Apart = append(l.Apart, Way{MaxDelay: time.Duration(r.IntN(9)), MinRate: uint64(r.IntN(15))})
		}
		for i := range l.Apart {
			l.Apart[i].Slow = 20 + 10*i
		}
		m.Links = append(m.Links, l)
	}
	m.addPaths(r)
	return m
}

// addPaths adds paths over random links.
func (m *Model) addPaths(r *rand.Rand) {
	for range r.IntN(3) {
		path := len(m.Paths)
		m.Paths = append(m.Paths, Path{MaxDelay: time.Duration(r.IntN(25))})
		for i := range m.Links {
			if r.IntN(2) == 0 {
				continue
			}
			l := &m.Links[i]
			l.Paths = append(l.Paths, path)
			add := func(w *Way) {
				w.Delays = append(w.Delays, time.Duration(r.IntN(5)))
				if r.IntN(10) == 0 {
					w.Delays[len(w.Delays)-1] = Unbounded
				}
			}
			for w := range l.Apart {
				add(&l.Apart[w])
			}
			if l.Local != nil {
				add(l.Local)
			}
		}
	}
}

// bruteForce tries every node for every function, and computes the cost from the rules
// alone.
func bruteForce(m *Model) (best Cost, found bool) {
	routes := m.Routes()
	at := make([]int, len(m.Functions))
	var try func(f int)
	try = func(f int) {
		if f == len(at) {
			if cost, ok := costOf(m, routes, at); ok && (!found || cost.Less(best)) {
				best, found = cost, true
			}
			return
		}
		for n := range m.Nodes {
			at[f] = n
			try(f + 1)
		}
	}
	try(0)
	return best, found
}

// costOf is the cost of a whole placement; false: it breaks a rule.
func costOf(m *Model, routes [][]Route, at []int) (Cost, bool) {
	var cost Cost
	host := func(f int) int { return m.Nodes[at[f]].Host }
	hosts := map[int]bool{}
	for n, node := range m.Nodes {
		cpus, memory := 0, uint64(0)
		for f, on := range at {
			if on == n {
				cpus, memory = cpus+m.Functions[f].CPUs, memory+m.Functions[f].Memory
			}
		}
		if cpus > node.CPUs || memory > node.Memory {
			return cost, false
		}
	}
	for f := range at {
		hosts[host(f)] = true
		if fn := m.Functions[f]; fn.Nodes != nil && !slices.Contains(fn.Nodes, at[f]) {
			return cost, false
		}
		for _, g := range m.Functions[f].Against {
			if host(f) == host(g) {
				return cost, false
			}
		}
	}
	cost.Hosts = len(hosts)
	used, paths := make([]uint64, len(m.Lines)), make([]time.Duration, len(m.Paths))
	for _, l := range m.Links {
		var delay time.Duration
		var lines []int
		rate, apart := uint64(0), false
		for _, f := range l.Ends {
			for _, g := range l.Ends {
				if host(f) >= host(g) {
					continue
				}
				apart = true
				r := routes[host(f)][host(g)]
				if len(r.Lines) == 0 {
					return cost, false
				}
				if delay = max(delay, r.Delay); r.Rate > 0 && (rate == 0 || r.Rate < rate) {
					rate = r.Rate
				}
				lines = append(lines, r.Lines...)
			}
		}
		slices.Sort(lines)
		lines = slices.Compact(lines)
		ways := l.Apart
		if !apart {
			ways = nil
			if l.Local != nil {
				ways = []Way{*l.Local}
			}
		}
		i := slices.IndexFunc(ways, func(w Way) bool { return !w.Never && delay <= w.MaxDelay && (rate == 0 || w.MinRate <= rate) })
		switch {
		case i >= 0:
			for _, line := range lines {
				used[line] += ways[i].MinRate
			}
		case !m.Unmet || len(ways) == 0:
			return cost, false
		default:
			i = 0
			cost.Unmet++
			if !ways[0].Never {
				cost.Over += max(0, delay-ways[0].MaxDelay)
			}
		}
		cost.Slow, cost.Delay = cost.Slow+ways[i].Slow, cost.Delay+delay
		for p, path := range l.Paths {
			paths[path] += ways[i].Delays[p] + delay
		}
	}
	for i, p := range m.Paths {
		if over := paths[i] - p.MaxDelay; over > 0 {
			cost.Unmet, cost.Over = cost.Unmet+1, cost.Over+over
		}
	}
	if cost.Unmet > 0 && !m.Unmet {
		return cost, false
	}
	for i, l := range m.Lines {
		if l.Rate > 0 && used[i] > l.Rate {
			return cost, false
		}
	}
	return cost, true
}

func TestSolveEqualsBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	possible := 0
	for i := range 1000 {
		m := random(r, 2+r.IntN(5), 2+r.IntN(2))
		want, exists := bruteForce(m)
		got, proven := Solve(m)
		if !proven || (got != nil) != exists || exists && got.Cost != want {
			t.Fatalf("instance %d: got %+v, proven %v, want %+v, exists %v\n%+v", i, got, proven, want, exists, m)
		}
		if exists {
			possible++
			if cost, ok := costOf(m, m.Routes(), got.Node); !ok || cost != want {
				t.Fatalf("instance %d: the placement %v costs %+v, %v", i, got.Node, cost, ok)
			}
			if low := bound(m); want.Less(low) {
				t.Fatalf("instance %d: %+v is below the bound %+v", i, want, low)
			}
		}
		if Possible(m) != exists {
			t.Fatalf("instance %d: feasible says otherwise", i)
		}
	}
	if possible < 300 || possible > 900 {
		t.Errorf("%d of 1,000 instances are possible: too few or too many to learn from", possible)
	}
}

// TestLargestExactSize: 12 functions on 6 hosts are solved to the end.
func TestLargestExactSize(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for i := range 20 {
		m := random(r, ExactFunctions, ExactHosts)
		m.Unmet = i%2 == 0 // some are possible then
		began := time.Now()
		p, proven := Solve(m)
		if !proven {
			t.Errorf("instance %d: not proven: %+v", i, p)
		}
		t.Logf("instance %d: %+v in %v", i, p, time.Since(began).Round(time.Millisecond))
	}
}

// fleet is a chain of functions in groups on hosts in racks, as large as the limit that we state.
func fleet(functions, hosts int) *Model {
	r := rand.New(rand.NewPCG(200, 50))
	m := &Model{Hosts: hosts}
	for h := range hosts {
		for range 2 {
			m.Nodes = append(m.Nodes, Node{Host: h, CPUs: 8, Memory: 64 << 30})
		}
		m.Lines = append(m.Lines, Line{Ends: [2]int{h, hosts + h/10}, Rate: 25e9, Delay: 2 * time.Microsecond, Group: h})
	}
	for rack := range (hosts + 9) / 10 {
		m.Lines = append(m.Lines, Line{Ends: [2]int{hosts + rack, 2*hosts + 1}, Rate: 100e9, Delay: 20 * time.Microsecond, Group: hosts + rack})
	}
	for f := range functions {
		m.Functions = append(m.Functions, Function{CPUs: 1 + r.IntN(4), Memory: uint64(1+r.IntN(8)) << 30})
		for _, g := range []int{f - 1, f - 7} {
			if g >= 0 && (g/8 == f/8 || r.IntN(3) == 0) {
				m.Links = append(m.Links, Link{Ends: []int{g, f}, Local: &Way{Slow: 5},
					Apart: []Way{{Slow: 80, MaxDelay: time.Duration(10+r.IntN(90)) * time.Microsecond, MinRate: uint64(r.IntN(3)) * 1e9}}})
			}
		}
	}
	return m
}

// TestLargeModelIsFast limits what the search computes, generously: the benchmark tells the time.
func TestLargeModelIsFast(t *testing.T) {
	m := fleet(200, 50)
	began := testenv.ProcessorTime(t)
	p, _ := Solve(m)
	took := testenv.ProcessorTime(t) - began
	if p == nil {
		t.Fatal("no placement was found")
	}
	if cost, ok := costOf(m, m.Routes(), p.Node); !ok || cost != p.Cost {
		t.Errorf("the placement costs %+v, %v, not %+v", cost, ok, p.Cost)
	}
	t.Logf("%+v, bound %+v, optimal %v, in %v", p.Cost, p.Bound, p.Optimal, took)
	if took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestASecondSearchFindsTheSame(t *testing.T) {
	m := fleet(60, 12)
	p, _ := Solve(m)
	if again, _ := Solve(m); !slices.Equal(p.Node, again.Node) {
		t.Error("a second search gives another placement")
	}
}

func BenchmarkSolve200Functions50Hosts(b *testing.B) {
	m := fleet(200, 50)
	for range b.N {
		if p, _ := Solve(m); p == nil {
			b.Fatal("no placement was found")
		}
	}
}

// TestRoutesOfEqualDelay: with many equal delays, the rest of each route is the route from
// there, and the way back is the same.
func TestRoutesOfEqualDelay(t *testing.T) {
	ties := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := &Model{Hosts: 7}
		for h := range m.Hosts {
			for g := range h {
				if r.IntN(2) == 0 {
					m.Lines = append(m.Lines, Line{Ends: [2]int{g, h}, Delay: time.Duration(r.IntN(3)), Rate: uint64(1 + r.IntN(9))})
				}
			}
		}
		r.Shuffle(len(m.Lines), func(i, j int) { m.Lines[i], m.Lines[j] = m.Lines[j], m.Lines[i] })
		routes := m.Routes()
		for a := range m.Hosts {
			for b := range m.Hosts {
				there, back := routes[a][b], slices.Clone(routes[b][a].Lines)
				slices.Reverse(back)
				if !slices.Equal(there.Lines, back) {
					t.Fatalf("seed %d: from %d to %d over %v, and back over %v", seed, a, b, there.Lines, back)
				}
				if len(there.Lines) < 2 {
					continue
				}
				ties++
				next := m.Lines[there.Lines[0]].Ends[0] + m.Lines[there.Lines[0]].Ends[1] - a
				if rest := routes[next][b].Lines; !slices.Equal(rest, there.Lines[1:]) {
					t.Fatalf("seed %d: from %d to %d over %v, but from %d over %v", seed, a, b, there.Lines, next, rest)
				}
			}
		}
	}
	if ties < 1000 {
		t.Errorf("%d routes over more than one line", ties)
	}
}

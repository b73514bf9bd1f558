// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// line is two hosts with 2 CPUs each, 40 km apart, and a radio on the first: the radio and
// its unit do not fit one host, and the link between them allows 160 µs of fibre.
func line() *Model {
	return &Model{
		Hosts:     2,
		Nodes:     []Node{{Host: 0, CPUs: 2, Memory: 4 << 30}, {Host: 1, CPUs: 2, Memory: 4 << 30}},
		Lines:     []Line{{Ends: [2]int{0, 1}, Rate: 10e9, Delay: 200 * time.Microsecond}},
		Functions: []Function{{CPUs: 1, Nodes: []int{0}}, {CPUs: 2}},
		Links:     []Link{{Ends: []int{0, 1}, Local: &Way{Slow: 5}, Apart: []Way{{Slow: 80, MaxDelay: 160 * time.Microsecond, MinRate: 1e9}}}},
	}
}

func TestConflictNamesWhatCannotHoldTogether(t *testing.T) {
	got := NewEffort().Conflict(line())
	want := []Limit{{KindCPUs, 0}, {KindPin, 0}, {KindLink, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	m := line()
	m.Lines[0].Delay = 0
	if got := NewEffort().Conflict(m); got != nil {
		t.Errorf("a possible model has the conflict %v", got)
	}
	m = line()
	m.Links[0].Apart = nil
	if got, want := NewEffort().Conflict(m), []Limit{{KindCPUs, 0}}; !slices.Equal(got, want) && !slices.Equal(got, append(want, Limit{KindPin, 0})) {
		t.Errorf("without a tunnel: got %v", got)
	}
}

func TestSmallestRelaxations(t *testing.T) {
	got := NewEffort().Relaxations(line())
	want := []Relaxation{
		{Limit{KindDelay, 0}, 40_000}, // 8 km
		{Limit{KindLink, 0}, 40_000},
		{Limit{KindCPUs, 0}, 1},
		{Limit{KindPin, 0}, 0}, // then both are on one host? 3 CPUs are not: see below
	}
	if !slices.Equal(got, want[:3]) {
		t.Errorf("got %v, want %v", got, want[:3])
	}
	m := line()
	m.Nodes[1].CPUs = 3
	if got := NewEffort().Relaxations(m); !slices.Contains(got, want[3]) {
		t.Errorf("got %v, want also %v", got, want[3])
	}
	m = line()
	m.Lines[0].Delay, m.Lines[0].Rate = 0, 300e6
	if got := NewEffort().Relaxations(m); !slices.Contains(got, Relaxation{Limit{KindRate, 0}, 1e9}) {
		t.Errorf("got %v, want a rate of 1 Gb/s", got)
	}
	m = line()
	m.Lines[0].Delay, m.Functions[1].Memory = 0, 5<<30
	if got := NewEffort().Relaxations(m); !slices.Contains(got, Relaxation{Limit{KindMemory, 1}, 1 << 30}) {
		t.Errorf("got %v, want 1 GiB more on the second host", got)
	}
}

// TestRelaxationsAreSmallestByBruteForce: what is proposed helps, a step less does not, and
// no limit in a conflict is superfluous.
func TestRelaxationsAreSmallestByBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	proposed, conflicts := 0, 0
	for range 300 {
		m := random(r, 2+r.IntN(4), 2)
		for i := range m.Lines {
			m.Lines[i].Delay *= DelayStep
		}
		if _, exists := bruteForce(m); exists {
			continue
		}
		for _, relaxed := range NewEffort().Relaxations(m) {
			proposed++
			steps := relaxed.Amount / stepOf(relaxed.Kind)
			with, without := m.without(relaxed.Limit), m
			if relaxed.Kind != KindPin {
				with, without = m.changed(relaxed.Limit, steps), m.changed(relaxed.Limit, steps-1)
			}
			if _, helps := bruteForce(with); !helps {
				t.Fatalf("%+v does not help", relaxed)
			}
			if _, less := bruteForce(without); less {
				t.Fatalf("less than %+v helps", relaxed)
			}
		}
		conflict := NewEffort().Conflict(m)
		if len(conflict) == 0 {
			continue
		}
		conflicts++
		rest := m
		for _, l := range m.limits() {
			if !slices.Contains(conflict, l) {
				rest = rest.without(l)
			}
		}
		if _, exists := bruteForce(rest); exists {
			t.Fatalf("the limits %v can hold together", conflict)
		}
		for _, l := range conflict {
			if _, exists := bruteForce(rest.without(l)); !exists {
				t.Fatalf("%v is not needed for the conflict %v", l, conflict)
			}
		}
	}
	t.Logf("%d relaxations, %d conflicts", proposed, conflicts)
	if proposed < 50 || conflicts < 20 {
		t.Errorf("only %d relaxations and %d conflicts were seen", proposed, conflicts)
	}
}

func TestLargeConflictNamesKinds(t *testing.T) {
	m := fleet(60, 10)
	for i := range m.Nodes {
		m.Nodes[i].CPUs = 1
	}
	if got, want := NewEffort().Conflict(m), []Limit{{KindCPUs, -1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAlternativesSayWhyTheyLost(t *testing.T) {
	m := line()
	m.Hosts = 3
	m.Nodes = append(m.Nodes, Node{Host: 2, CPUs: 1})
	m.Lines[0].Delay = 100 * time.Microsecond
	m.Lines = append(m.Lines, Line{Ends: [2]int{0, 2}, Delay: time.Millisecond})
	m.Functions = append(m.Functions, Function{CPUs: 1})
	m.Links = append(m.Links, Link{Ends: []int{0, 2}, Local: &Way{Slow: 5}, Apart: []Way{{Slow: 80, MaxDelay: time.Second}}})
	p, proven := Solve(m)
	if !proven || !slices.Equal(p.Node, []int{0, 1, 0}) {
		t.Fatalf("placed %+v", p)
	}
	all := Alternatives(m, p)
	for _, c := range []struct {
		f, i int
		lost Limit
	}{
		{0, 0, Limit{KindPin, 0}},
		{1, 0, Limit{KindCPUs, 0}},
		{1, 1, Limit{KindCPUs, 2}},
		{2, 0, Limit{KindCPUs, 1}},
		{2, 1, Limit{}},
	} {
		if got := all[c.f][c.i]; got.Lost != c.lost {
			t.Errorf("function %d on host %d: lost to %v, not %v", c.f, got.Host, got.Lost, c.lost)
		}
	}
	if got := all[2][1]; got.More != (Cost{Slow: 75, Delay: time.Millisecond, Hosts: 1}) || !slices.Equal(got.Links, []int{1}) {
		t.Errorf("the third function on the third host: %+v", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// large is functions of which one fits each host, at most.
func large() *Model {
	m := &Model{Hosts: 64}
	for h := range m.Hosts {
		m.Nodes = append(m.Nodes, Node{Host: h, CPUs: 6, Memory: 1 << 30})
	}
	for f := range 32 {
		m.Functions = append(m.Functions, Function{CPUs: 4 + f%3})
	}
	return m
}

// weave joins the hosts of a model, and the functions by links of many ends: they make each step of
// a search long.
func weave(m *Model, ends int) *Model {
	r := rand.New(rand.NewPCG(1, 2))
	for h := range m.Hosts {
		m.Lines = append(m.Lines, Line{Ends: [2]int{h, m.Hosts}, Group: h, Delay: time.Microsecond, Rate: 1e12})
	}
	for range 64 {
		m.Links = append(m.Links, Link{Ends: r.Perm(len(m.Functions))[:ends], Local: &Way{Slow: 1}, Apart: []Way{{Slow: 5, MaxDelay: Unbounded, MinRate: 1}}})
	}
	return m
}

// crowded has room for all functions in sum, but no placement, and none of its parts are alike.
func crowded() *Model {
	m := &Model{Hosts: 6}
	for h, cpus := range []int{105, 111, 111, 101, 109, 110} {
		m.Nodes = append(m.Nodes, Node{Host: h, CPUs: cpus, Memory: []uint64{110, 110, 107, 111, 101, 102}[h]})
	}
	memory := []uint64{39, 33, 25, 69, 56, 33, 71, 29, 40, 37, 43, 42}
	for f, cpus := range []int{53, 42, 40, 51, 36, 56, 74, 42, 38, 43, 39, 44} {
		m.Functions = append(m.Functions, Function{CPUs: cpus, Memory: memory[f]})
	}
	return m
}

// TestSearchesEnd: what a chain's author writes decides how long a step is, not how long the
// operator is busy. The limit is generous: without bounds these searches take many minutes.
func TestSearchesEnd(t *testing.T) {
	const limit = time.Minute
	for name, search := range map[string]func(){
		"64 hosts": func() { Solve(weave(large(), 16)) },
		"6 hosts":  func() { Solve(weave(crowded(), ExactFunctions)) },
		"explained": func() {
			m, e := weave(crowded(), 2), NewEffort()
			conflict := e.Conflict(m)
			if !e.Spent() || !slices.Contains(conflict, Limit{KindPin, -1}) {
				t.Errorf("the conflict is %v: what was not tried is missing", conflict)
			}
			e.Relaxations(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := testenv.ProcessorTime(t)
			search()
			took := testenv.ProcessorTime(t) - began
			if t.Logf("%v", took); took > limit {
				t.Errorf("it took %v", took)
			}
		})
	}
}

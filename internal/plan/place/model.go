// SPDX-License-Identifier: Apache-2.0

// Package place puts functions on hosts: on one NUMA node each, within its CPUs and
// memory, so that every link has a transport with evidence for its requirements. It
// knows neither chains nor files. The result depends only on the model.
package place

import (
	"cmp"
	"slices"
	"time"
)

// Model is what has to be placed, and where.
type Model struct {
	Hosts     int // Node.Host and Line.Ends below Hosts are hosts; higher ends are switches between them
	Nodes     []Node
	Lines     []Line
	Functions []Function
	Links     []Link
	Paths     []Path
	// Unmet permits links and paths without evidence for every requirement; they cost more than
	// anything else.
	Unmet bool
}

// Node is a NUMA node. A host without NUMA has one.
type Node struct {
	Host   int
	CPUs   int
	Memory uint64 // bytes
}

// Line joins two hosts, or a host and a switch.
type Line struct {
	Ends  [2]int
	Rate  uint64 // bit/s of Ethernet frames in each direction; 0: no limit
	Delay time.Duration
	// Group is shared by lines that can only change together.
	Group int
}

// Function needs CPUs and memory of one node.
type Function struct {
	CPUs   int
	Memory uint64 // bytes
	// Nodes are those it may be on, ascending; nil: any.
	Nodes []int
	// Against are functions that cannot share its host, because both name the same CPU.
	Against []int
}

// Link joins two or more functions.
type Link struct {
	Ends  []int // functions, each once
	Local *Way  // between functions on one host; nil: there is none
	Apart []Way // between hosts, fastest first
	// Paths are those that take the link.
	Paths []int
}

// Path is links whose delays add up.
type Path struct {
	// MaxDelay is the longest sum of the delays of transports and lines with which the
	// path's latency has evidence.
	MaxDelay time.Duration
}

// Way is one way to realise a link, and what it leaves for the lines between hosts.
type Way struct {
	Slow int // the rank of the transport: the smaller, the faster
	// MaxDelay is the longest delay of lines with which all delay requirements have
	// evidence; negative: none.
	MaxDelay time.Duration
	// MinRate is the lowest rate of a line with which all other requirements have
	// evidence, in bit/s of Ethernet frames. The link takes as much of each line.
	MinRate uint64
	// Never says that some requirement has no evidence on any line.
	Never bool
	// Delays are the transport's own delay for each of the link's paths; Unbounded: there is
	// no evidence.
	Delays []time.Duration
}

// Unbounded is longer than any path allows. Sums of it do not overflow.
const Unbounded time.Duration = 1 << 52

// Cost orders placements: its fields count in this order.
type Cost struct {
	Unmet int           `json:"unmet"` // links and paths without evidence for every requirement
	Over  time.Duration `json:"over"`  // sum of the delays beyond what these allow; ns
	Slow  int           `json:"slow"`  // sum of the ranks of all transports
	Delay time.Duration `json:"delay"` // sum of the delays of lines, over all links; ns
	Hosts int           `json:"hosts"` // in use
}

// Less reports whether c is better than d.
func (c Cost) Less(d Cost) bool {
	return cmp.Or(cmp.Compare(c.Unmet, d.Unmet), cmp.Compare(c.Over, d.Over), cmp.Compare(c.Slow, d.Slow), cmp.Compare(c.Delay, d.Delay), cmp.Compare(c.Hosts, d.Hosts)) < 0
}

func (c Cost) plus(d Cost) Cost {
	return Cost{c.Unmet + d.Unmet, c.Over + d.Over, c.Slow + d.Slow, c.Delay + d.Delay, c.Hosts + d.Hosts}
}

func (c Cost) minus(d Cost) Cost {
	return Cost{c.Unmet - d.Unmet, c.Over - d.Over, c.Slow - d.Slow, c.Delay - d.Delay, c.Hosts - d.Hosts}
}

// carries reports whether the way has evidence for every requirement over a route.
func (w *Way) carries(delay time.Duration, rate uint64) bool {
	return !w.Never && delay <= w.MaxDelay && (rate == 0 || w.MinRate <= rate)
}

// over is how much longer a delay is than the way allows.
func (w *Way) over(delay time.Duration) time.Duration {
	if w.Never {
		return 0
	}
	return max(0, delay-w.MaxDelay)
}

// allows reports whether the function may be on the node.
func (f *Function) allows(node int) bool {
	if f.Nodes == nil {
		return true
	}
	_, found := slices.BinarySearch(f.Nodes, node)
	return found
}

// clone is a model whose parts can be changed without changing m.
func (m *Model) clone() *Model {
	c := *m
	c.Nodes, c.Lines = slices.Clone(m.Nodes), slices.Clone(m.Lines)
	c.Functions, c.Links, c.Paths = slices.Clone(m.Functions), slices.Clone(m.Links), slices.Clone(m.Paths)
	for i := range c.Links {
		l := &c.Links[i]
		if l.Apart = slices.Clone(l.Apart); l.Local != nil {
			local := *l.Local
			l.Local = &local
		}
	}
	return &c
}

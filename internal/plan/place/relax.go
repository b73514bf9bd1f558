// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"
	"slices"
	"time"
)

// Kind is a kind of limit of a model.
type Kind int

const (
	KindPin    Kind = iota + 1 // where a function may be
	KindCPUs                   // of a host
	KindMemory                 // of a host
	KindLink                   // what a link requires
	KindPath                   // what a path requires
	KindRate                   // of a group of lines
	KindDelay                  // of a group of lines
)

// Limit is one limit of a model: Index is a function, a host, a link or a group of
// lines. Negative: all of that kind.
type Limit struct {
	Kind  Kind
	Index int
}

// Limits are those of the model, in the order in which Conflict tries to do without
// them.
func (m *Model) limits() []Limit {
	var all []Limit
	each := func(kind Kind, n int) {
		if !small(m) {
			all = append(all, Limit{kind, -1})
			return
		}
		for i := range n {
			all = append(all, Limit{kind, i})
		}
	}
	each(KindMemory, m.Hosts)
	each(KindRate, m.groups())
	each(KindCPUs, m.Hosts)
	each(KindPin, len(m.Functions))
	each(KindLink, len(m.Links))
	each(KindPath, len(m.Paths))
	return all
}

func (m *Model) groups() int {
	n := 0
	for _, l := range m.Lines {
		n = max(n, l.Group+1)
	}
	return n
}

// without is the model without a limit.
func (m *Model) without(l Limit) *Model {
	c := m.clone()
	is := func(i int) bool { return l.Index < 0 || l.Index == i }
	switch l.Kind {
	case KindPin:
		for f := range c.Functions {
			if is(f) {
				c.Functions[f].Nodes = nil
			}
		}
	case KindCPUs, KindMemory:
		for n := range c.Nodes {
			switch {
			case !is(c.Nodes[n].Host):
			case l.Kind == KindCPUs:
				c.Nodes[n].CPUs = math.MaxInt32
			default:
				c.Nodes[n].Memory = 1 << 56 // sums of it do not overflow
			}
		}
	case KindLink:
		for i := range c.Links {
			if is(i) {
				c.Links[i].free()
			}
		}
	case KindPath:
		for i := range c.Paths {
			if is(i) {
				c.Paths[i].MaxDelay = math.MaxInt64
			}
		}
	case KindRate:
		for i := range c.Lines {
			if is(c.Lines[i].Group) {
				c.Lines[i].Rate = 0
			}
		}
	}
	return c
}

// free removes all requirements of a link.
func (l *Link) free() {
	lift := func(w *Way) { w.MaxDelay, w.MinRate, w.Never = math.MaxInt64, 0, false }
	for i := range l.Apart {
		lift(&l.Apart[i])
	}
	if l.Local != nil {
		lift(l.Local)
	}
}

// Conflict is a smallest set of limits that cannot hold together, if the model has no
// placement: without any one of them it has one, or other limits are in the way. It is
// empty if links have no transport at all. For a large model, and for the rest if the effort
// is spent, it names only kinds of limits.
func (e *Effort) Conflict(m *Model) []Limit {
	if m = m.clone(); e.Possible(m) {
		return nil
	}
	var kept []Limit
	for _, l := range m.limits() {
		free := m.without(l)
		switch possible := e.Possible(free); {
		case e.Spent():
			if all := (Limit{l.Kind, -1}); !slices.Contains(kept, all) {
				kept = append(kept, all)
			}
		case possible:
			kept = append(kept, l)
		default:
			m = free
		}
	}
	return kept
}

// Relaxation is one change with which the model has a placement. Its Index is a node for
// CPUs and memory: a function cannot use those of two nodes.
type Relaxation struct {
	Limit
	// Amount is the least that helps: CPUs or bytes more on a node, bit/s of lines in
	// all, ns less on each line of a group, or ns more for a link or
	// a path. 0 for a pin, which goes.
	Amount uint64
}

// Steps in which relaxations are looked for.
const (
	DelayStep  = 500 * time.Nanosecond // 100 m of fibre
	rateStep   = 1_000_000             // bit/s
	memoryStep = 1 << 20               // bytes
)

// Relaxations are, for each kind of limit, the smallest change of one limit that helps:
// of one group of lines, one link, one node or one function. A large model is not
// searched. If the effort is spent, a change that helps may be missing, or too large.
func (e *Effort) Relaxations(m *Model) []Relaxation {
	if !small(m) || e.Possible(m) {
		return nil
	}
	var all []Relaxation
	for _, k := range []struct {
		kind Kind
		n    int
		most uint64 // steps
	}{
		{KindDelay, m.groups(), uint64(m.longest()/DelayStep) + 1},
		{KindLink, len(m.Links), uint64(time.Second)},
		{KindPath, len(m.Paths), uint64(time.Second)},
		{KindRate, m.groups(), m.demand()/rateStep + 1},
		{KindCPUs, len(m.Nodes), m.wanted()},
		{KindMemory, len(m.Nodes), m.asked()/memoryStep + 1},
	} {
		if r, ok := e.smallest(m, k.kind, k.n, k.most); ok {
			all = append(all, r)
		}
	}
	for f := range m.Functions {
		if pin := (Limit{KindPin, f}); m.Functions[f].Nodes != nil && e.Possible(m.without(pin)) {
			return append(all, Relaxation{Limit: pin})
		}
	}
	return all
}

// smallest looks for the limit of a kind that has to change least.
func (e *Effort) smallest(m *Model, kind Kind, n int, most uint64) (best Relaxation, found bool) {
	for i := range n {
		limit := Limit{kind, i}
		if most == 0 || !e.Possible(m.changed(limit, most)) {
			continue
		}
		low, high := uint64(0), most // impossible, possible
		for high-low > 1 {
			if mid := low + (high-low)/2; e.Possible(m.changed(limit, mid)) {
				high = mid
			} else {
				low = mid
			}
		}
		most, best, found = high-1, Relaxation{limit, high * stepOf(kind)}, true
	}
	return best, found
}

func stepOf(kind Kind) uint64 {
	switch kind {
	case KindDelay:
		return uint64(DelayStep)
	case KindRate:
		return rateStep
	case KindMemory:
		return memoryStep
	}
	return 1
}

// changed is the model with one limit relaxed by so many steps; l is that of a Relaxation.
func (m *Model) changed(l Limit, steps uint64) *Model {
	c := m.clone()
	amount := steps * stepOf(l.Kind)
	switch l.Kind {
	case KindDelay, KindRate:
		for i := range c.Lines {
			switch line := &c.Lines[i]; {
			case line.Group != l.Index:
			case l.Kind == KindDelay:
				line.Delay -= min(line.Delay, time.Duration(amount))
			case line.Rate > 0:
				line.Rate = max(line.Rate, amount)
			}
		}
	case KindLink:
		c.Links[l.Index].slacken(time.Duration(amount))
	case KindPath:
		c.Paths[l.Index].MaxDelay = longer(c.Paths[l.Index].MaxDelay, time.Duration(amount))
	case KindCPUs:
		c.Nodes[l.Index].CPUs += int(amount)
	case KindMemory:
		c.Nodes[l.Index].Memory += amount
	}
	return c
}

// slacken allows a link more delay.
func (l *Link) slacken(more time.Duration) {
	for i := range l.Apart {
		l.Apart[i].MaxDelay = longer(l.Apart[i].MaxDelay, more)
	}
	if l.Local != nil {
		l.Local.MaxDelay = longer(l.Local.MaxDelay, more)
	}
}

func longer(d, more time.Duration) time.Duration {
	if d > math.MaxInt64-more {
		return d
	}
	return d + more
}

func (m *Model) longest() (d time.Duration) {
	for _, l := range m.Lines {
		d = max(d, l.Delay)
	}
	return d
}

// demand is what all links take of a line that carries them all.
func (m *Model) demand() (sum uint64) {
	for _, l := range m.Links {
		most := uint64(0)
		for _, w := range l.Apart {
			most = max(most, w.MinRate)
		}
		sum += most
	}
	return sum
}

func (m *Model) wanted() (sum uint64) {
	for _, f := range m.Functions {
		sum += uint64(f.CPUs)
	}
	return sum
}

func (m *Model) asked() (sum uint64) {
	for _, f := range m.Functions {
		sum += f.Memory
	}
	return sum
}

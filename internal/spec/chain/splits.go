// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

// Split is a functional split of a base station, by the name of its option in 3GPP
// TR 38.801: the higher, the nearer to the antenna.
type Split string

// SplitBudget is what a split asks of the link that it makes.
type SplitBudget struct {
	Split   Split
	Latency units.Duration // one way
	Bitrate units.Bitrate  // of the direction that needs more; 0: no figure
}

// SplitBudgets are the figures of TR 38.801, annex A, for one cell, in the order of the
// options. Of a range it is the end that asks for more. "Approximately 100 µs" (option 4)
// and "hundreds of microseconds" (option 5) are taken as 100 µs, "lower than option 2"
// (the rate of option 3) as that of option 2. The report was not at hand to check: the rates
// of options 4 and 5 may differ from it, and 7c has none.
var SplitBudgets = []SplitBudget{
	{"1", budget(10 * time.Millisecond), 4e9},
	{"2", budget(1500 * time.Microsecond), 4016e6},
	{"3", budget(1500 * time.Microsecond), 4016e6},
	{"4", budget(100 * time.Microsecond), 5200e6},
	{"5", budget(100 * time.Microsecond), 7100e6},
	{"6", budget(250 * time.Microsecond), 5600e6},
	{"7a", budget(250 * time.Microsecond), 22e9},
	{"7b", budget(250 * time.Microsecond), 86e9},
	{"7c", budget(250 * time.Microsecond), 0},
	{"8", budget(250 * time.Microsecond), 157.3e9},
}

func budget(d time.Duration) units.Duration { return units.Duration(d) }

// Splits are the names of all options.
func Splits() []Split {
	var names []Split
	for _, b := range SplitBudgets {
		names = append(names, b.Split)
	}
	return names
}

// order is the index of the split's budget; negative if there is none.
func (s Split) order() int {
	return slices.IndexFunc(SplitBudgets, func(b SplitBudget) bool { return b.Split == s })
}

// Budget is that of the split, nil if there is none.
func (s Split) Budget() *SplitBudget {
	i := s.order()
	if i < 0 {
		return nil
	}
	return &SplitBudgets[i]
}

// above reports whether s is further from the antenna than other.
func (s Split) above(other Split) bool { return s.order() < other.order() }

// SplitOf is the split that a link carries: a function's split is towards the core, so
// of its ends it is the one nearest to the antenna. Empty: none, or all ends are one function's.
func (c *Chain) SplitOf(l *Link) Split {
	var split Split
	functions := map[string]bool{}
	for _, e := range l.Ends {
		f := c.Function(e.Function)
		if f == nil {
			continue
		}
		functions[f.Name] = true
		if split.above(f.Split) {
			split = f.Split
		}
	}
	if len(functions) < 2 {
		return ""
	}
	return split
}

// Require fills in what a split asks of the link and the file does not state.
func (r *Requires) Require(s Split) {
	b := s.Budget()
	if b == nil {
		return
	}
	if r.stated("latency") == 0 {
		r.Latency = b.Latency
	}
	if r.stated("min_bitrate") == 0 {
		r.MinBitrate = b.Bitrate
	}
	if r.Percentile == 0 {
		r.Percentile = defaultPercentile
	}
}

// stated is the line of a requirement in the file; 0: it is not there.
func (r *Requires) stated(field string) int { return r.Pos[field].Line }

// WithSplit is the chain with another split of one function, and with what its links
// require then. The chain must come from a file.
func (c *Chain) WithSplit(function string, split Split) *Chain {
	changed := *c
	changed.Functions, changed.Links = slices.Clone(c.Functions), slices.Clone(c.Links)
	changed.Function(function).Split = split
	for i := range changed.Links {
		l := &changed.Links[i]
		if !slices.ContainsFunc(l.Ends, func(e End) bool { return e.Function == function }) {
			continue
		}
		r := &l.Requires
		if r.stated("latency") == 0 {
			r.Latency = 0
		}
		if r.stated("min_bitrate") == 0 {
			r.MinBitrate = 0
		}
		r.Require(changed.SplitOf(l))
	}
	return &changed
}

// Looser are the splits that may ask for less than s, the likeliest first: option 2, for
// which 3GPP has specified an interface (F1), then the nearest.
func (s Split) Looser() []Split {
	var looser []Split
	for _, b := range slices.Backward(SplitBudgets) {
		if b.Split.above(s) && b.Split != "2" {
			looser = append(looser, b.Split)
		}
	}
	if Split("2").above(s) {
		return append([]Split{"2"}, looser...)
	}
	return looser
}

// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// prolong measures undecided requirements again, and longer.
func (in Input) prolong(ctx context.Context, ms []measurement, own observation, made *collector) error {
	first := firstLook(made.trials)
	again, own := in.undecided(ms, first), own.undecided(first)
	if len(again) == 0 && len(own.links) == 0 {
		return nil
	}
	// All begin in the same round, so that each round interleaves them.
	begin := own.before
	for _, m := range again {
		begin = max(begin, m.before)
	}
	for i := range again {
		again[i].before = begin
	}
	own.before = begin
	r := in.runner(again, own, made)
	r.Warmups = 0 // everything is warm
	if in.Prolong != nil {
		in.Prolong(fmt.Sprintf("Not decided yet: %s; continuing for about %v", names(again, own), r.Estimate().Round(time.Second)))
	}
	return r.Run(ctx)
}

// firstLook are the trials that decide whether to look again.
func firstLook(trials []record.Trial) []record.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t record.Trial) bool { return t.Look > 0 })
}

// undecided are the measurements that a judge needs more of, each with the rounds
// that make them verdict.Prolonged times as many.
func (in Input) undecided(ms []measurement, trials []record.Trial) []measurement {
	var again []measurement
	for _, l := range in.Plan.Links {
		open := verdict.Undecided(verdict.OfRun(l, trials), trials)
		for _, m := range ms {
			if m.link.Name != l.Name || m.crossCheck || !slices.ContainsFunc(open, m.decides) {
				continue
			}
			m.before = firstRounds(m, in.Options)
			if m.before == 1 {
				continue // its result cannot vary
			}
			m.look, m.rounds = 1, (verdict.Prolonged-1)*m.before
			again = append(again, m)
		}
	}
	return again
}

// decides reports whether an undecided requirement waits for the measurement.
func (m measurement) decides(o verdict.Open) bool {
	return o.Quantity == m.quantity && o.Direction == verdict.Direction{From: m.from.String(), To: m.to.String()}
}

// firstRounds is how often a measurement is made before the first look.
func firstRounds(m measurement, o Options) int {
	if m.rounds > 0 {
		return m.rounds
	}
	return o.pace().rounds
}

// names lists repeated measurements for a user.
func names(ms []measurement, own observation) string {
	var parts []string
	for _, m := range ms {
		parts = append(parts, fmt.Sprintf("%s %s %s → %s", m.link.Name, m.word, m.from.Function, m.to.Function))
	}
	for _, l := range own.links {
		parts = append(parts, l.Name+" own traffic")
	}
	return strings.Join(parts, ", ")
}

// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Budget limits the time of a run. The first round is always measured, within
// AtMost; WholeRounds determines the rest.
type Budget struct {
	AtMost time.Duration // 0: no limit
	Spent  time.Duration // by earlier processes
	// WholeRounds measures the first round completely, and each further one only if
	// there is time for a round as long as the longest so far. Otherwise items are
	// dropped one by one, Reserved ones last.
	WholeRounds bool

	longest time.Duration // round of this process
	spent   func() time.Duration
}

// cost is the approximate duration of turns.
type cost struct{ all, reserved time.Duration }

// rounds are the rounds of the run, warm-ups first.
func (r *Runner) rounds() []Round {
	var rounds []Round
	for n := range r.Warmups {
		rounds = append(rounds, Round{n, true})
	}
	for n := range r.last() {
		rounds = append(rounds, Round{n, false})
	}
	return rounds
}

// last is the highest number of counted rounds of any item.
func (r *Runner) last() int {
	n := r.Rounds
	for _, item := range r.Items(Round{}, source(r.Seed, Round{})) {
		n = max(n, item.Rounds)
	}
	return n
}

// roundsOf is how many rounds of a kind an item takes part in.
func (r *Runner) roundsOf(item Item, round Round) int {
	switch {
	case round.Warmup && item.NoWarmup:
		return 0
	case round.Warmup:
		return r.Warmups
	case item.Rounds > 0:
		return item.Rounds
	}
	return r.Rounds
}

// source depends only on the seed and the round, so a resumed run has the same
// order.
func source(seed uint64, round Round) *rand.Rand {
	number := uint64(round.Number)
	if round.Warmup {
		number = ^number
	}
	return rand.New(rand.NewPCG(seed, number))
}

// draw returns a round's turns in random order.
func (r *Runner) draw(round Round) []*Turn {
	rng := source(r.Seed, round)
	var turns []*Turn
	for _, item := range r.Items(round, rng) {
		if round.Number < item.From || round.Number >= r.roundsOf(item, round) {
			continue
		}
		turns = append(turns, &Turn{Item: item, Round: round, runner: r})
		if item.Twice && !round.Warmup {
			turns = append(turns, &Turn{Item: item, Round: round, runner: r})
		}
	}
	rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	if r.ShortFirst && round.Number == 0 && !round.Warmup {
		slices.SortStableFunc(turns, shortFirst)
	}
	seen := map[string]bool{}
	for _, t := range turns {
		t.Again = seen[t.Item.ID]
		seen[t.Item.ID] = true
	}
	return turns
}

func shortFirst(a, b *Turn) int {
	if a.Item.Spare != b.Item.Spare {
		if a.Item.Spare {
			return 1
		}
		return -1
	}
	return cmp.Compare(a.Item.Expect, b.Item.Expect)
}

// Estimate is the approximate duration of a run without a limit.
func (r *Runner) Estimate() time.Duration { return sum(r.costs(r.rounds())).all }

// costs are the rounds' costs, without finished turns.
func (r *Runner) costs(rounds []Round) []cost {
	var costs []cost
	for _, round := range rounds {
		costs = append(costs, r.costOf(r.draw(round)))
	}
	return costs
}

func (r *Runner) costOf(turns []*Turn) cost {
	var c cost
	for _, t := range turns {
		if r.done(t) && !r.warmsAgain(t) {
			continue
		}
		c.all += r.takes(t)
		if t.Item.Reserved {
			c.reserved += r.takes(t)
		}
	}
	return c
}

func sum(costs []cost) cost {
	var s cost
	for _, c := range costs {
		s.all += c.all
		s.reserved += c.reserved
	}
	return s
}

// takes is the approximate duration of a turn.
func (r *Runner) takes(t *Turn) time.Duration { return r.Settle + Watched + t.Item.Expect }

// left is the approximate time left in the run, with these turns left in its
// round.
func (r *Runner) left(turns []*Turn) time.Duration {
	left := r.costOf(turns).all + sum(r.later).all
	if r.Budget.AtMost > 0 {
		left = min(left, max(0, r.Budget.AtMost-r.spent()))
	}
	return left
}

func (r *Runner) spent() time.Duration {
	if r.Budget.spent != nil {
		return r.Budget.spent()
	}
	return r.Took()
}

// fitsRound reports whether there is time for a round.
func (r *Runner) fitsRound(round Round) bool {
	b := r.Budget
	return !b.WholeRounds || b.AtMost <= 0 || round.Number == 0 || r.spent()+b.longest <= b.AtMost
}

// fits reports whether there is time for the first of a round's remaining turns.
func (r *Runner) fits(turns []*Turn) bool {
	b := r.Budget
	if b.WholeRounds || b.AtMost <= 0 {
		return true
	}
	first := turns[0]
	left := b.AtMost - r.spent() - r.takes(first)
	if first.Item.Spare || first.Round.Number > 0 && !first.Item.Reserved {
		left -= r.costOf(turns).reserved + sum(r.later).reserved
	}
	return left >= 0
}

// SPDX-License-Identifier: Apache-2.0

// Package runner measures a matrix of items: warm-up first, then rounds in which
// every item has one turn, in a new random order for each round. It watches the
// machine, limits the time, skips trials of earlier processes, and completes one
// record for each trial.
package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
)

// Item is one configuration to measure, once in every round.
type Item struct {
	ID    string // unique in the matrix; the ids of its trials begin with it
	Title string // for a user
	// Trials are the ids of the trials of one turn, without the round, if there
	// are several; nil: one trial with the item's id.
	Trials []string
	// Rounds is the number of its last round, counted from 1; 0: Runner.Rounds.
	Rounds int
	// From is the first round that it takes part in.
	From int
	// NoWarmup excludes it from warm-up rounds, because the instrument warms up
	// by itself or the result cannot vary.
	NoWarmup bool
	// Twice measures it twice in every round (A/A), to show the random differences
	// between figures of one configuration.
	Twice bool
	// Reserved means that no other item may take the time of its rounds, once every
	// item has been measured.
	Reserved bool
	// Spare means that it takes only time that no Reserved item needs, in any round.
	Spare bool
	// OwnMeter means that its trials themselves record how busy the machine was.
	OwnMeter bool
	// Expect is the approximate duration of one turn.
	Expect time.Duration
	// Demand is the threads that want a CPU at once, by function.
	Demand Demand
	// Measure brings the item up if it is not, measures it, passes every trial
	// to Turn.Record, and takes it down. An error ends the run.
	Measure func(ctx context.Context, t *Turn) error
}

// Round is the repetition that a trial belongs to.
type Round struct {
	Number int // from 0, in warm-ups too
	Warmup bool
}

// Sink receives records as they are made, such as a *record.Writer.
type Sink interface {
	Write(record.Trial) error
}

// Progress is the state of a run just before a turn.
type Progress struct {
	Item   Item
	Round  Round
	Rounds int           // of this kind, for this item
	Turn   int           // in this round, from 1; 0: outside of rounds
	Turns  int           // of this round
	Left   time.Duration // approximate time to the end of the run
	AtMost time.Duration // the run's time limit; 0: none
}

// String is for users: "link f1u: stream cu-up → du, round 2 of 5, 3 of 12 in it, 14 s left".
func (p Progress) String() string {
	text := p.Item.Title
	switch {
	case p.Round.Warmup:
		text += ", warm-up"
	case p.Rounds > 0:
		text += fmt.Sprintf(", round %d of %d", p.Round.Number+1, p.Rounds)
	}
	if p.Turn > 0 {
		text += fmt.Sprintf(", %d of %d in it", p.Turn, p.Turns)
	}
	text = fmt.Sprintf("%s, %d s left", text, int(p.Left.Round(time.Second).Seconds()))
	if p.AtMost > 0 {
		text += fmt.Sprintf(" of at most %d", int(p.AtMost.Seconds()))
	}
	return text
}

// ErrInterrupted is the outcome of a run whose context ended.
var ErrInterrupted error = interruption{}

type interruption struct{}

func (interruption) Error() string { return "interrupted" }
func (interruption) Unwrap() error { return context.Canceled }

// Runner runs a matrix. Rounds, Items and Env must be set.
type Runner struct {
	ID      string // of the run, for the records
	Seed    uint64 // of the order
	Rounds  int
	Warmups int // rounds before the first that counts
	// Items are the items of a round. Random choices among their trials use the given
	// source, so that a resumed run makes the same choices.
	Items func(Round, *rand.Rand) []Item
	// Settle is how long the machine rests before each turn, after an item has been
	// removed.
	Settle time.Duration
	Budget Budget
	// ShortFirst orders the first round by how long turns take, Spare items last, so that
	// most items are measured if the time does not suffice for all.
	ShortFirst bool
	Done       map[string]bool // ids of the trials that earlier processes made
	Sink       Sink
	// Own is the CPU time of what is measured since it began, such as of switches that
	// poll: it is no other work. nil: nothing runs before a turn.
	Own func() (time.Duration, error)
	// OtherRuns counts the other drays that measure now. Env does so before a turn; one
	// may begin during it. nil: not again.
	OtherRuns func() int
	// Env describes the machine's current state; the runner adds its own measurements
	// (BusyDuring, Stolen). Trials that have an environment keep it.
	Env func() record.Environment
	// Elsewhere means that the measured machine is not this one, so that nobody knows how
	// busy it is.
	Elsewhere bool
	// Progress is called before each turn; nil: no reports.
	Progress func(Progress)
	// RoundDone is called at the end of each round that counts; nil: not.
	RoundDone func(number int) error

	again    map[string]bool // items to warm up again, by id; nil: not known yet
	order    int             // of the next record
	started  time.Time
	later    []cost                        // of the rounds to come
	cpuTimes func() (host.CPUTimes, error) // nil: host.ReadCPUTimes
}

// Seed is the seed, or a new random one if it is 0.
func Seed(asked uint64) uint64 {
	if asked == 0 {
		return 1 + rand.Uint64N(1<<53-1) // exact in JSON readers that use doubles
	}
	return asked
}

// List returns the same items in every round.
func List(items []Item) func(Round, *rand.Rand) []Item {
	return func(Round, *rand.Rand) []Item { return items }
}

// Run measures all remaining trials. A failed trial is a record with Error, and
// the run continues. A cancelled context or a failing Sink ends the run.
func (r *Runner) Run(ctx context.Context) error {
	r.started, r.order = time.Now(), len(r.Done)
	rounds := r.rounds()
	r.later = r.costs(rounds)
	for _, round := range rounds {
		r.later = r.later[1:]
		began := time.Now()
		if !r.fitsRound(round) {
			break
		}
		if err := r.round(ctx, round); err != nil {
			return outcome(ctx, err)
		}
		r.Budget.longest = max(r.Budget.longest, time.Since(began))
		if r.RoundDone != nil && !round.Warmup {
			if err := r.RoundDone(round.Number); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcome is the error that ends a run. It is ErrInterrupted if the context ended.
func outcome(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case err == ctx.Err():
		return ErrInterrupted
	}
	return fmt.Errorf("%w: %w", ErrInterrupted, err)
}

// Took is how long the run has taken, including earlier processes.
func (r *Runner) Took() time.Duration { return r.Budget.Spent + time.Since(r.started) }

func (r *Runner) round(ctx context.Context, round Round) error {
	turns := r.draw(round)
	for i, t := range turns {
		t.unrecorded = r.warmsAgain(t)
		if r.done(t) && !t.unrecorded || !r.fits(turns[i:]) {
			continue // a shorter one may still fit
		}
		if r.Progress != nil {
			r.Progress(Progress{Item: t.Item, Round: round, Rounds: r.roundsOf(t.Item, round), Turn: i + 1, Turns: len(turns), Left: r.left(turns[i:]), AtMost: r.Budget.AtMost})
		}
		if err := r.turn(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// turn watches the machine, and measures an item.
func (r *Runner) turn(ctx context.Context, t *Turn) error {
	if err := host.Sleep(ctx, r.Settle); err != nil {
		return err
	}
	if err := t.watch(ctx); err != nil {
		return err
	}
	if err := t.Item.Measure(ctx, t); err != nil {
		return err
	}
	return ctx.Err()
}

// done reports whether earlier processes made every trial of a turn.
func (r *Runner) done(t *Turn) bool {
	for _, id := range t.trialIDs() {
		if !r.Done[id] {
			return false
		}
	}
	return true
}

// warmsAgain reports whether an earlier process warmed up an item that this one
// measures: caches and the CPU's clock have forgotten it.
func (r *Runner) warmsAgain(t *Turn) bool {
	if !t.Round.Warmup || !r.done(t) {
		return false
	}
	if r.again == nil {
		r.again = map[string]bool{}
		for n := range r.last() {
			for _, left := range r.draw(Round{Number: n}) {
				r.again[left.Item.ID] = r.again[left.Item.ID] || !r.done(left)
			}
		}
	}
	return r.again[t.Item.ID]
}

func (r *Runner) own() (time.Duration, error) {
	if r.Own == nil {
		return 0, nil
	}
	return r.Own()
}

func (r *Runner) readCPUTimes() (host.CPUTimes, error) {
	if r.Elsewhere {
		return host.CPUTimes{}, nil
	}
	read := r.cpuTimes
	if read == nil {
		read = host.ReadCPUTimes
	}
	t, err := read()
	if err != nil {
		return t, fmt.Errorf("load of the machine: %w", err)
	}
	return t, nil
}

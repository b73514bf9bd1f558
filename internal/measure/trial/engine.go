// SPDX-License-Identifier: Apache-2.0

// Package trial runs a matrix of trials: warm-up first, then rounds in which
// every cell runs once, in an order drawn anew for each round, and one record
// for each trial.
package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
)

// Cell is one thing to measure, again and again.
type Cell struct {
	ID string // unique in the matrix; it begins the ids of its trials
	// Rounds is how often it is measured; 0: as often as Engine.Rounds.
	Rounds int
	// NoWarmup leaves it out of the warm-up rounds, for an instrument that
	// warms up by itself, or a result that cannot vary.
	NoWarmup bool
	// Expect is about how long one trial takes.
	Expect time.Duration
	// Demand is the threads that want a CPU at once, by function.
	Demand Demand
	// Run measures once. The trial counts also beside an error.
	Run func(ctx context.Context, r Round) (record.Trial, error)
}

// Round says which repetition a trial is.
type Round struct {
	Number int // from 0, in warm-ups too
	Warmup bool
}

// Sink takes records as they are made, such as a *record.Writer.
type Sink interface {
	Write(record.Trial) error
}

// Progress is where a run stands just before a trial.
type Progress struct {
	Cell   Cell
	Round  Round
	Rounds int           // of this kind, for this cell
	Left   time.Duration // until the run ends, about
}

// Engine runs cells. Seed, Rounds and Env must be set.
type Engine struct {
	Seed     uint64 // of the order
	Rounds   int
	Warmups  int            // rounds before the first that counts
	Before   Before         // what the run that this one goes on with has made
	Sink     Sink           // nil: records are only returned
	Progress func(Progress) // nil: none
	// Env describes the machine as it is now; the engine adds what it
	// measures itself (BusyDuring, Stolen).
	Env func() record.Environment

	cpuTimes func() (host.CPUTimes, error) // nil: host.ReadCPUTimes
}

// Before is how far a run had come that is prolonged: ids and orders go on from
// there. Cells then have as many rounds more.
type Before struct {
	Trials int // records
	Rounds int // of any cell, at most
}

// pause is how long the machine is watched before each trial, to see what
// else runs on it. It must be several clock ticks of 10 ms.
const pause = 100 * time.Millisecond

// planned is one trial to come.
type planned struct {
	cell   Cell
	round  Round
	rounds int
}

// Run runs every cell in every round and returns the records in the order in
// which they were made. A trial that fails is a record with Error, and the run
// goes on. A cancelled context and a Sink that fails end the run; the records
// made so far are returned with the error.
func (e *Engine) Run(ctx context.Context, cells []Cell) ([]record.Trial, error) {
	schedule := e.schedule(cells)
	left := expect(schedule)
	var trials []record.Trial
	for order, p := range schedule {
		if e.Progress != nil {
			e.Progress(Progress{Cell: p.cell, Round: p.round, Rounds: p.rounds, Left: left})
		}
		t, err := e.one(ctx, p)
		if err != nil {
			return trials, err
		}
		t.Order = e.Before.Trials + order
		if e.Sink != nil {
			if err := e.Sink.Write(t); err != nil {
				return trials, err
			}
		}
		trials = append(trials, t)
		left -= pause + p.cell.Expect
	}
	return trials, nil
}

// Estimate is about how long Run takes.
func (e *Engine) Estimate(cells []Cell) time.Duration { return expect(e.schedule(cells)) }

func expect(schedule []planned) time.Duration {
	var sum time.Duration
	for _, p := range schedule {
		sum += pause + p.cell.Expect
	}
	return sum
}

// schedule draws the order of all trials.
func (e *Engine) schedule(cells []Cell) []planned {
	rng := rand.New(rand.NewPCG(e.Seed, uint64(e.Before.Trials)))
	var all []planned
	add := func(round Round, member func(Cell) (rounds int, in bool)) {
		first := len(all)
		for _, c := range cells {
			if rounds, in := member(c); in {
				all = append(all, planned{c, round, rounds})
			}
		}
		now := all[first:]
		rng.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
	}
	for n := range e.Warmups {
		add(Round{n, true}, func(c Cell) (int, bool) { return e.Warmups, !c.NoWarmup })
	}
	for n := range e.most(cells) {
		add(Round{e.Before.Rounds + n, false}, func(c Cell) (int, bool) { return e.rounds(c), n < e.rounds(c) })
	}
	return all
}

func (e *Engine) rounds(c Cell) int {
	if c.Rounds > 0 {
		return c.Rounds
	}
	return e.Rounds
}

func (e *Engine) most(cells []Cell) int {
	n := 0
	for _, c := range cells {
		n = max(n, e.rounds(c))
	}
	return n
}

// one runs one trial and completes its record. An error means that the run
// has to end.
func (e *Engine) one(ctx context.Context, p planned) (record.Trial, error) {
	before, during, env, err := e.watch(ctx)
	if err != nil {
		return record.Trial{}, err
	}
	start := time.Now()
	t, runErr := p.cell.Run(ctx, p.round)
	if err := ctx.Err(); err != nil {
		return t, err
	}
	after, err := e.readCPUTimes()
	if err != nil {
		return t, err
	}
	env.BusyDuring, env.Stolen = after.Since(during)
	busyBefore, _ := during.Since(before)
	if t.Start.IsZero() {
		t.Start, t.Duration = start, time.Since(start)
	}
	if runErr != nil {
		t.Error = runErr.Error()
	}
	t.Schema, t.Seed, t.Env = record.Schema, e.Seed, env
	t.ID, t.Round, t.Warmup = p.id(), p.round.Number, p.round.Warmup
	t.Marks = merge(Preflight(env, p.cell.Demand, busyBefore), t.Marks)
	return t, nil
}

// merge adds the marks that are not there yet: the instrument may have seen what
// was expected.
func merge(marks, more []string) []string {
	for _, m := range more {
		if !slices.Contains(marks, m) {
			marks = append(marks, m)
		}
	}
	return marks
}

func (p planned) id() string {
	kind := "r"
	if p.round.Warmup {
		kind = "w"
	}
	return fmt.Sprintf("%s-%s%d", p.cell.ID, kind, p.round.Number)
}

// watch looks at the machine for the length of the pause.
func (e *Engine) watch(ctx context.Context) (begin, end host.CPUTimes, env record.Environment, err error) {
	if begin, err = e.readCPUTimes(); err != nil {
		return begin, end, env, err
	}
	if err = host.Sleep(ctx, pause); err != nil {
		return begin, end, env, err
	}
	if end, err = e.readCPUTimes(); err != nil {
		return begin, end, env, err
	}
	return begin, end, e.Env(), nil
}

func (e *Engine) readCPUTimes() (host.CPUTimes, error) {
	read := e.cpuTimes
	if read == nil {
		read = host.ReadCPUTimes
	}
	t, err := read()
	if err != nil {
		return t, fmt.Errorf("load of the machine: %w", err)
	}
	return t, nil
}

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/drayage/dray/internal/measure/search"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/matrix"
)

const (
	// searchMost bounds the number of loads in one search.
	searchMost = 20
	// searchRange is how far below the highest passing load a search may go.
	searchRange = 1000
)

// errNoRate means that a search ended without a result.
var errNoRate = errors.New("no rate met the goal")

// search finds the highest rate with tolerable loss. It returns the record of the
// trial at that rate; intermediate trials are numbered records.
func (s *setup) search(ctx context.Context, load matrix.Load) (record.Trial, error) {
	length := time.Duration(s.runner.Run.Matrix.Trial)
	first, err := s.offer(ctx, 0, length)
	if err != nil {
		return first, err
	}
	// An interrupted search has left its first steps.
	before := 0
	for s.runner.Done[s.stepID(load, before+1)] {
		before++
	}
	if err := s.step(first, load, before+1); err != nil {
		return first, err
	}
	most := first.Delivery.SentRate
	if most < searchRange {
		return first, fmt.Errorf("%s: at full speed only %d packets/s were sent: nothing to search", load, most)
	}
	steps, best := 1, map[uint64]record.Trial{}
	measure := func(ctx context.Context, rate uint64, d time.Duration) (search.Outcome, error) {
		t, err := s.offer(ctx, rate, d)
		if ctx.Err() != nil {
			return search.Outcome{}, ctx.Err()
		}
		if err != nil {
			t.Error = err.Error()
		}
		steps++
		best[rate] = t
		if err := s.step(t, load, before+steps); err != nil {
			return search.Outcome{}, err
		}
		return outcome(t)
	}
	found, err := find(ctx, search.MeasurerFunc(measure), &s.runner.Run.Matrix, load, most)
	if err != nil {
		return first, err
	}
	return searched(found, best, steps)
}

// find searches as the load requires. No rate above most, packets/s, is tried.
func find(ctx context.Context, measurer search.Measurer, m *matrix.Matrix, load matrix.Load, most uint64) (search.Result, error) {
	length, asked := time.Duration(m.Trial), m.Search
	least := max(uint64(math.Ceil(1/length.Seconds())), most/searchRange) // a packet in each trial
	if load.Search == matrix.LoadRFC2544 {
		return search.Binary{
			Min: least, Max: most, Trial: length, Resolution: float64(asked.Width), Verify: asked.Verify,
		}.Throughput(ctx, measurer)
	}
	goal := goalOf(m, load)
	return search.MLR(ctx, measurer, search.Config{Goals: []search.Goal{goal}, Min: least, Max: most, MaxTrials: searchMost * trialsALoad(goal)})
}

// goalOf is the search goal of NDR or PDR.
func goalOf(m *matrix.Matrix, load matrix.Load) search.Goal {
	asked := m.Search
	goal := search.NDR(time.Duration(m.Trial), time.Duration(asked.Sum))
	if load.Search == matrix.LoadPDR {
		goal = search.PDR(goal.Trial, goal.Sum)
		goal.LossRatio = float64(asked.Loss)
	}
	goal.Width, goal.ExceedRatio = float64(asked.Width), float64(asked.Exceed)
	return goal
}

// trialsALoad is the maximum number of trials for a load.
func trialsALoad(g search.Goal) int { return int((g.Sum + g.Trial - 1) / g.Trial) }

// searchTrials is roughly how many trials a search takes.
func searchTrials(m *matrix.Matrix, load matrix.Load) int {
	if load.Search == matrix.LoadRFC2544 {
		// Full speed, both ends of the interval, and halvings, every other of which holds.
		halvings := math.Log2(1 / float64(m.Search.Width))
		return 3 + int(math.Ceil(halvings*float64(1+m.Search.Verify)/2))
	}
	g := goalOf(m, load)
	return 1 + int(search.Config{Goals: []search.Goal{g}}.Estimate()/g.Trial)
}

// step writes the record of an intermediate trial.
func (s *setup) step(t record.Trial, load matrix.Load, number int) error {
	t = s.complete(t, load)
	t.ID = s.stepID(load, number)
	bench := *t.Bench // shared with the trial found
	bench.Step = number
	t.Bench = &bench
	return s.turn.Record(t, s.demand(load), nil)
}

// stepID names an intermediate trial.
func (s *setup) stepID(load matrix.Load, number int) string {
	return fmt.Sprintf("%s-s%d", s.visit.id(load), number)
}

// searched is the record of the search result.
func searched(found search.Result, made map[uint64]record.Trial, steps int) (record.Trial, error) {
	g := found.Goals[0] // the requested one
	if g.Lower == 0 {
		return record.Trial{}, fmt.Errorf("%w (%s): %s", errNoRate, g.Goal, g.Reason)
	}
	t, ok := made[g.Lower]
	if !ok || t.Bench == nil {
		return t, fmt.Errorf("no trial ran at the rate found, %d packets/s", g.Lower)
	}
	bench := *t.Bench
	bench.Search = &record.Search{Goal: g.Goal.String(), Trials: steps, Lower: g.Lower, Upper: g.Upper, Throughput: g.Throughput}
	if !g.Regular {
		bench.Search.Irregular = g.Reason
	}
	t.Bench = &bench
	return t, nil
}

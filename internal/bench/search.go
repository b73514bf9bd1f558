// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/search"
	"github.com/drayage/dray/internal/trial"
)

const (
	// searchWidth is how close the bounds of a rate must come to each other.
	searchWidth = 0.02
	// searchSum is how many trials of full length decide a load.
	searchSum = 3
	// searchMost bounds the trials of one search.
	searchMost = 60
	// searchRange is how far below the most that passes a search may go.
	searchRange = 1000
)

// search finds the highest rate that loses little enough. The record is that of
// the trial at that rate; those on the way to it are records too, numbered.
func (s *site) search(ctx context.Context, load chain.BenchLoad) (record.Trial, error) {
	length := time.Duration(s.runner.Run.Matrix.Trial)
	goal := search.NDR(length, searchSum*length)
	if load.Search == chain.LoadPDR {
		goal = search.PDR(length, searchSum*length)
	}
	goal.Width = searchWidth
	first, err := s.offer(ctx, 0, length)
	if err != nil {
		return first, err
	}
	// A search that was interrupted has left the first steps of another.
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
		return outcome(t, s.step(t, load, before+steps))
	}
	found, err := search.MLR(ctx, search.MeasurerFunc(measure), search.Config{
		Goals: []search.Goal{goal}, Min: max(1, most/searchRange), Max: most, MaxTrials: searchMost,
	})
	if err != nil {
		return first, err
	}
	return searched(found, goal, best, steps)
}

// outcome is what the search makes of a trial, unless it could not be written.
func outcome(t record.Trial, written error) (search.Outcome, error) {
	if written != nil {
		return search.Outcome{}, written
	}
	return trial.Outcome(t)
}

// step writes the record of a trial on the way.
func (s *site) step(t record.Trial, load chain.BenchLoad, number int) error {
	t = s.complete(t, load, errorOf(t))
	t.ID = s.stepID(load, number)
	bench := *t.Bench // the trial found shares it
	bench.Step = number
	t.Bench = &bench
	return s.runner.write(t)
}

// stepID names a trial on the way.
func (s *site) stepID(load chain.BenchLoad, number int) string {
	return fmt.Sprintf("%s-s%d", s.visit.id(load), number)
}

func errorOf(t record.Trial) error {
	if t.Error == "" {
		return nil
	}
	return errors.New(t.Error)
}

// searched is the record of what was found.
func searched(found search.Result, goal search.Goal, made map[uint64]record.Trial, steps int) (record.Trial, error) {
	g, ok := found.Goal(goal.Name)
	if !ok || g.Lower == 0 {
		return record.Trial{}, fmt.Errorf("no rate met the goal (%s): %s", goal, g.Reason)
	}
	t, ok := made[g.Lower]
	if !ok || t.Bench == nil {
		return t, fmt.Errorf("no trial was made at the rate found, %d packets/s", g.Lower)
	}
	bench := *t.Bench
	bench.Search = &record.Search{Goal: goal.String(), Trials: steps, Lower: g.Lower, Upper: g.Upper, Throughput: g.Throughput}
	if !g.Regular {
		bench.Search.Irregular = g.Reason
	}
	t.Bench = &bench
	return t, nil
}

// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
)

// Watched is how long the runner watches the machine before each turn, to detect
// other work. It must be several clock ticks of 10 ms.
const Watched = 100 * time.Millisecond

// Turn is the measurement of an item in a round.
type Turn struct {
	Item  Item
	Round Round
	Again bool // the second turn in this round of an item measured twice

	runner *Runner
	// unrecorded says that an earlier process made the record of this warm-up.
	unrecorded bool
	busy       float64            // share of all CPU time in use by other work before the turn
	env        record.Environment // before the turn
	// Time since the turn began, or its last trial was recorded.
	began    time.Time
	cpuTimes host.CPUTimes
}

// ID is the id of the turn's trial.
func (t *Turn) ID() string { return t.TrialID(t.Item.ID) }

// TrialID is the id in this turn of one of the item's trials.
func (t *Turn) TrialID(id string) string {
	kind, again := "r", ""
	if t.Round.Warmup {
		kind = "w"
	}
	if t.Again {
		again = "-again"
	}
	return fmt.Sprintf("%s-%s%d%s", id, kind, t.Round.Number, again)
}

func (t *Turn) trialIDs() []string {
	if t.Item.Trials == nil {
		return []string{t.ID()}
	}
	var ids []string
	for _, id := range t.Item.Trials {
		ids = append(ids, t.TrialID(id))
	}
	return ids
}

// Single measures an item that makes one trial in a turn. The trial also counts
// on error. A turn that takes longer than patience fails; 0: no limit.
func Single(patience time.Duration, measure func(context.Context, *Turn) (record.Trial, error)) func(context.Context, *Turn) error {
	return func(ctx context.Context, t *Turn) error {
		trial, err := bounded(ctx, patience, t, measure)
		if ctx.Err() != nil {
			return Interrupted(ctx, err) // a resumed run measures it again
		}
		return t.Record(trial, t.Item.Demand, err)
	}
}

// Interrupted is an error that mentions the context's end once.
func Interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return errors.Join(err, ctx.Err())
}

func bounded(ctx context.Context, patience time.Duration, t *Turn, measure func(context.Context, *Turn) (record.Trial, error)) (record.Trial, error) {
	if patience == 0 {
		return measure(ctx, t)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	trial, err := measure(ctx, t)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("given up after %v: %w", patience, err)
	}
	return trial, err
}

// watch observes the machine before the turn.
func (t *Turn) watch(ctx context.Context) error {
	before, err := t.runner.readCPUTimes()
	if err != nil {
		return err
	}
	own, err := t.runner.own()
	if err != nil {
		return err
	}
	if err := host.Sleep(ctx, Watched); err != nil {
		return err
	}
	if t.cpuTimes, err = t.runner.readCPUTimes(); err != nil {
		return err
	}
	now, err := t.runner.own()
	if err != nil {
		return err
	}
	t.busy, _ = t.cpuTimes.Since(before)
	t.busy -= t.cpuTimes.Share(before, now-own)
	t.env, t.began = t.runner.Env(), time.Now()
	return nil
}

// Record completes a trial and passes it to the sink. demand is the threads that
// wanted a CPU during the trial; failed is why it failed, or nil. A trial without
// an id gets the turn's. A repeated warm-up leaves no second record.
func (t *Turn) Record(trial record.Trial, demand Demand, failed error) error {
	if t.unrecorded {
		return nil
	}
	if trial.Env.Kernel == "" {
		busy, stolen := trial.Env.BusyDuring, trial.Env.Stolen
		trial.Env = t.env
		trial.Env.BusyDuring, trial.Env.Stolen = busy, stolen
	}
	now, err := t.runner.readCPUTimes()
	if err != nil {
		return err
	}
	if !t.Item.OwnMeter {
		trial.Env.BusyDuring, trial.Env.Stolen = now.Since(t.cpuTimes)
	}
	if t.runner.OtherRuns != nil {
		trial.Env.OtherRuns = max(trial.Env.OtherRuns, t.runner.OtherRuns())
	}
	if trial.Start.IsZero() {
		trial.Start = t.began
	}
	if trial.Duration == 0 {
		trial.Duration = time.Since(t.began)
	}
	if failed != nil {
		trial.Error = failed.Error()
	}
	if trial.ID == "" || t.Item.Trials == nil {
		trial.ID = t.ID()
	}
	r := t.runner
	trial.Schema, trial.Run, trial.Seed, trial.Order = record.Schema, r.ID, r.Seed, r.order
	trial.Round, trial.Warmup = t.Round.Number, t.Round.Warmup
	marks := trial.Marks
	trial.Marks = Preflight(trial.Env, demand, t.busy)
	trial.Mark(marks...)
	r.order++
	t.cpuTimes, t.began = now, time.Now()
	if r.Sink == nil {
		return nil
	}
	return r.Sink.Write(trial)
}

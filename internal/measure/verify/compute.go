// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

const (
	// computeExtra is how long the spinners of a trial take to start and end.
	computeExtra = 300 * time.Millisecond
	// computeDeadlines is how many deadlines a trial lasts at least.
	computeDeadlines = 2
)

// Compute measures every function with compute, while a thread spins on each CPU in the
// control group of each function that has one of its CPUs. No command may run. The
// functions of a CPU are measured at the same time by their own spinners. oslat and
// cyclictest take turns, if they are installed.
func Compute(ctx context.Context, in Input) error {
	dray, err := os.Executable()
	if err != nil {
		return err
	}
	r := in.computeRunner(dray)
	made := collect(in.Sink, in.Earlier)
	r.ID, r.Sink, r.Done, r.Env, r.Own, r.Progress, r.OtherRuns = in.Run, made, made.done, in.Env, in.Own, in.Progress, in.OtherRuns
	return r.Run(ctx)
}

// EstimateCompute is the approximate duration of Compute.
func EstimateCompute(in Input) time.Duration {
	r := in.computeRunner("")
	r.Done = collect(nil, in.Earlier).done
	return r.Estimate()
}

func (in Input) computeRunner(dray string) *runner.Runner {
	p := in.Options.pace()
	once := 0
	if !p.crossChecks {
		once = 1
	}
	var items []runner.Item
	for _, g := range neighbourhoods(in.Plan) {
		measured := slices.DeleteFunc(slices.Clone(g), func(f plan.Function) bool { return f.Compute == nil })
		length := in.computeLength(measured)
		items = append(items, runner.Item{
			ID: "share-" + strings.Join(functionNames(measured), "+"), Title: "share of " + parse.All(functionNames(measured)), Trials: shareIDs(measured),
			NoWarmup: true, Expect: length + computeExtra,
			Measure: func(ctx context.Context, t *runner.Turn) error { return in.shares(ctx, t, dray, g, length) },
		})
		for _, f := range measured {
			items = append(items, in.waits(dray, f, others(g, f), length, once)...)
		}
	}
	return &runner.Runner{Seed: in.Options.Seed, Rounds: p.rounds, Items: runner.List(items)}
}

// computeLength is the length of one trial.
func (in Input) computeLength(measured []plan.Function) time.Duration {
	if in.Options.Duration > 0 {
		return in.Options.Duration
	}
	length := in.Options.pace().least
	for _, f := range measured {
		length = max(length, computeDeadlines*time.Duration(f.Compute.Deadline))
	}
	return length
}

// neighbourhoods are the functions that share CPUs with each other, if one of them has
// compute. Programs of a virtual machine are beyond its control group.
func neighbourhoods(p *plan.Plan) [][]plan.Function {
	var all [][]plan.Function
	for _, f := range p.Functions {
		if f.Runtime == chain.RuntimeVM || len(f.CPUs) == 0 {
			continue
		}
		joined := []plan.Function{f}
		all = slices.DeleteFunc(all, func(g []plan.Function) bool {
			near := slices.ContainsFunc(g, func(other plan.Function) bool { return meet(f.CPUs, other.CPUs) })
			if near {
				joined = append(slices.Clone(g), joined...)
			}
			return near
		})
		all = append(all, joined)
	}
	return slices.DeleteFunc(all, func(g []plan.Function) bool {
		return !slices.ContainsFunc(g, func(f plan.Function) bool { return f.Compute != nil })
	})
}

func meet(a, b []int) bool {
	return slices.ContainsFunc(a, func(cpu int) bool { return slices.Contains(b, cpu) })
}

func functionNames(functions []plan.Function) []string {
	var all []string
	for _, f := range functions {
		all = append(all, f.Name)
	}
	return all
}

func shareIDs(functions []plan.Function) []string {
	var ids []string
	for _, f := range functions {
		ids = append(ids, "share-"+f.Name)
	}
	return ids
}

// others are the functions of a neighbourhood that share CPUs with f.
func others(g []plan.Function, f plan.Function) []plan.Function {
	return slices.DeleteFunc(slices.Clone(g), func(other plan.Function) bool { return other.Name == f.Name || !meet(other.CPUs, f.CPUs) })
}

// spinners are the busy threads of functions.
type spinners []*instrument.Spinner

func (s spinners) stop() error {
	var errs []error
	for _, one := range s {
		if one != nil {
			errs = append(errs, one.Stop())
		}
	}
	return errors.Join(errs...)
}

// spin keeps the CPUs of functions busy. The result has a spinner for each, even if it is an
// error: then some are nil.
func (in Input) spin(ctx context.Context, dray string, functions []plan.Function, length, most time.Duration) (spinners, error) {
	s := make(spinners, len(functions))
	for i, f := range functions {
		var err error
		if s[i], err = instrument.StartSpinner(ctx, dray, in.inFunction(f), f.CPUs, length, most); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (in Input) inFunction(f plan.Function) instrument.Endpoint {
	return instrument.Endpoint{Name: f.Name, Place: in.Sandboxes[f.Name].Place()}
}

// shares measures the functions of a neighbourhood that have compute, at the same time.
func (in Input) shares(ctx context.Context, t *runner.Turn, dray string, g []plan.Function, length time.Duration) error {
	s, err := in.spin(ctx, dray, g, length, 2*length+time.Minute)
	trials, failed := make([]record.Trial, len(g)), make([]error, len(g))
	for i := range s {
		if err == nil {
			err = s[i].Begin()
		}
	}
	for i := range s {
		trials[i].Quantity, failed[i] = record.QShare, err
		if err == nil {
			trials[i], failed[i] = s[i].Result(ctx)
		}
	}
	err = s.stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, f := range g {
		if f.Compute == nil {
			continue
		}
		trials[i].ID = t.TrialID("share-" + f.Name)
		if err := t.Record(in.ofFunction(trials[i], f, others(g, f)), nil, errors.Join(failed[i], err)); err != nil {
			return err
		}
	}
	return nil
}

// waits are the turns of oslat and cyclictest in a function, with busy neighbours.
func (in Input) waits(dray string, f plan.Function, busy []plan.Function, length time.Duration, rounds int) []runner.Item {
	var items []runner.Item
	for _, tool := range []struct {
		name string
		most time.Duration
		run  func(context.Context, instrument.Endpoint, []int, time.Duration) (record.Trial, error)
	}{
		{"oslat", instrument.StallTime(length), instrument.Stall},
		{"cyclictest", length, in.wakeUp},
	} {
		if _, err := exec.LookPath(tool.name); err != nil {
			continue // the spinner shows the same, with less detail
		}
		items = append(items, runner.Item{
			ID: tool.name + "-" + f.Name, Title: tool.name + " in " + f.Name, Rounds: rounds, NoWarmup: true, Expect: tool.most + computeExtra,
			Measure: runner.Single(0, func(ctx context.Context, _ *runner.Turn) (record.Trial, error) {
				s, err := in.spin(ctx, dray, busy, length, 2*tool.most+time.Minute)
				if err != nil {
					return in.ofFunction(record.Trial{}, f, busy), errors.Join(err, s.stop())
				}
				t, err := tool.run(ctx, in.inFunction(f), f.CPUs, length)
				return in.ofFunction(t, f, busy), errors.Join(err, s.stop())
			}),
		})
	}
	return items
}

// wakeUp runs cyclictest, whose own rights take a real-time budget.
func (in Input) wakeUp(ctx context.Context, at instrument.Endpoint, cpus []int, length time.Duration) (t record.Trial, err error) {
	undo, err := at.Place.Cgroup.Realtime()
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, undo()) }()
	return instrument.OrdinaryWakeUp(ctx, at, cpus, length)
}

// ofFunction fills in what only the chain knows about a trial.
func (in Input) ofFunction(t record.Trial, f plan.Function, busy []plan.Function) record.Trial {
	t.Chain, t.Function, t.From, t.To = in.Plan.Chain, f.Name, f.Name, f.Name
	t.Runtimes = map[string]string{f.Name: string(f.Runtime)}
	t.Marks = append(slices.Clone(t.Marks), in.Marks...)
	if t.Compute != nil {
		t.Compute.Neighbours = append([]string{}, functionNames(busy)...)
	}
	return t
}

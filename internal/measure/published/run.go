// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"slices"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// Runner runs experiments. All but Done and Progress must be set.
type Runner struct {
	*runner.Machine
	Run  *report.ExperimentsRun
	Sink runner.Sink
	// Done are the ids of the trials that earlier processes made.
	Done     map[string]bool
	Progress func(runner.Progress)
}

// Measure measures every round that is left. A trial that fails is a record with
// Error. A cancelled context and a sink that fails end the run, and nothing of it
// stays up.
func (r *Runner) Measure(ctx context.Context) error {
	began, before := time.Now(), r.Run.Took
	defer func() { r.Run.Took = before + time.Since(began) }()
	r.prepareImages(ctx)
	r.findImages(ctx)
	prepareMachines(ctx, here(r.Run))
	loop := r.loop()
	loop.Budget.Spent += time.Since(began)
	if err := loop.Run(ctx); err != nil {
		return err
	}
	r.Run.Finished = time.Now()
	return nil
}

// loop is the runner of all cells. If the time is limited, every cell is measured
// once, then those that decide claims in every round, and the others as time is left.
func (r *Runner) loop() *runner.Runner {
	run := r.Run
	compared, again := claimed(run), again(run)
	var items []runner.Item
	for _, c := range here(run) {
		item := runner.Item{
			ID: c.String(), Title: c.String(), Expect: expectIn(run, c) - runner.Watched, Demand: demand(c),
			Reserved: compared[c.String()], Twice: again != nil && *again == c, OwnMeter: c.Tool == experiment.ToolFrames,
			Measure: runner.Single(patienceFor(run, c), func(ctx context.Context, t *runner.Turn) (record.Trial, error) { return r.cell(ctx, t, c) }),
		}
		if once(run, c) {
			item.Rounds = 1
		}
		items = append(items, item)
	}
	return &runner.Runner{
		ID: run.ID, Seed: run.Seed, Rounds: run.Rounds, Items: runner.List(items), Done: r.Done, Sink: r.Sink, Progress: r.Progress,
		Budget: runner.Budget{AtMost: run.AtMost, Spent: run.Took}, Env: func() record.Environment { return r.Env(nil) },
	}
}

// prepareMachines does what is done once on a host, or once after its boot, and is
// no part of a machine's start: the kernel is fetched, and KVM is tried.
func prepareMachines(ctx context.Context, cells []experiment.Cell) {
	if !slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Runtime == chain.RuntimeVM }) {
		return
	}
	if k, err := guest.FindKernel(ctx, guest.Generic); err == nil {
		_, _ = guest.Accelerator(ctx, k) // what is wrong is said by the cells
	}
}

// cell measures a cell once.
func (r *Runner) cell(ctx context.Context, turn *runner.Turn, c experiment.Cell) (record.Trial, error) {
	t, err := r.measure(ctx, c)
	if t.Env.Kernel == "" {
		t.Env = r.Env(nil)
	}
	t.Transport, t.Experiment = c.Transport, named(t.Experiment, turn)
	if err == nil && t.Error == "" && t.Experiment.Values == nil {
		t.Experiment.Values, err = values(t)
	}
	if c.Tool == experiment.ToolCyclictest && !t.Env.Realtime && !(ownKernel(c) && c.Kernel == chain.VMKernelRT) {
		t.Mark(record.MarkNotRealtime)
	}
	return t, err
}

// named says which cell the figures of a trial are of.
func named(e *record.Experiment, t *runner.Turn) *record.Experiment {
	if e == nil {
		e = &record.Experiment{}
	}
	e.Cell = t.Item.ID
	if t.Again {
		e.Cell += report.Again
	}
	return e
}

// patience is how long a cell may take beside ten trials: far longer than it does
// on a busy machine, and short enough that one that hangs does not cost the run.
const patience = time.Minute

// machinePatience is how much longer a DPDK application may take in a virtual machine,
// if EAL starts slowly, and more so if it is emulated.
const machinePatience = 2 * time.Minute

// patienceFor is how long a cell may take until it is given up.
func patienceFor(run *report.ExperimentsRun, c experiment.Cell) time.Duration {
	most := patienceOf(run) + 10*run.Trial
	if c.Runtime == chain.RuntimeVM && c.Face == chain.FaceDPDK {
		most += machinePatience
	}
	return most
}

// demand is the threads that want a CPU all the time. What bench measures it
// marks itself.
func demand(c experiment.Cell) runner.Demand {
	switch c.Tool {
	case experiment.ToolTCP, experiment.ToolRequests:
		return runner.Demand{client: 1, server: 1}
	}
	return runner.Demand{}
}

// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/host"
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
	// Done are the ids of trials made by earlier processes.
	Done     map[string]bool
	Progress func(runner.Progress)
}

// Measure measures all remaining rounds. A failed trial is a record with Error. A
// cancelled context or a failing sink ends the run, and nothing of it stays up.
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

// loop is the runner of all cells. With limited time, every cell is measured once,
// then cells that decide claims in every round, and the others if time remains.
func (r *Runner) loop() *runner.Runner {
	run := r.Run
	var items []runner.Item
	for _, g := range groups(run) {
		items = append(items, r.item(g))
	}
	return &runner.Runner{
		OtherRuns: host.OtherMeasurements,
		ID:        run.ID, Seed: run.Seed, Rounds: run.Rounds, Items: runner.List(items), Done: r.Done, Sink: r.Sink, Progress: r.Progress,
		Budget: runner.Budget{AtMost: run.AtMost, Spent: run.Took}, ShortFirst: run.AtMost > 0, Env: func() record.Environment { return r.Env(nil) },
	}
}

// shownBy names the experiments with rows of a cell.
func shownBy(run *report.ExperimentsRun, c experiment.Cell) string {
	var names []string
	for i, e := range run.Experiments {
		if slices.ContainsFunc(e.Rows, func(r experiment.Row) bool { return r.NotRun == "" && r.Cell == c }) {
			names = append(names, fmt.Sprintf("%s (%d of %d)", e.Name, i+1, len(run.Experiments)))
		}
	}
	return strings.Join(names, ", ")
}

// prepareMachines does work needed once per host, or once per boot, that is no
// part of a machine's start: it fetches the kernel, and tries KVM.
func prepareMachines(ctx context.Context, cells []experiment.Cell) {
	if !slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Runtime == chain.RuntimeVM }) {
		return
	}
	if k, err := guest.FindKernel(ctx, guest.Generic); err == nil {
		_, _ = guest.Accelerator(ctx, k) // the cells report problems
	}
}

// patience is a cell's time limit in addition to ten trials: far more than it
// needs on a busy machine, but short enough that one hung cell is affordable.
const patience = time.Minute

// machinePatience is extra time for a DPDK application in a virtual machine, where EAL
// may start slowly, especially under emulation.
const machinePatience = 2 * time.Minute

// patienceFor is a cell's time limit.
func patienceFor(run *report.ExperimentsRun, c experiment.Cell) time.Duration {
	most := patienceOf(run) + 9*run.Trial + lasts(c, run.Trial)
	if c.Runtime == chain.RuntimeVM && c.Face == chain.FaceDPDK {
		most += machinePatience
	}
	switch c.Tool {
	case experiment.ToolRAN:
		most += ranAttachPatience + ranTime(c, run.Trial)
	case experiment.ToolFronthaul:
		most += 2*fronthaulPatience + fronthaulTime(c, run.Trial)
	}
	return most + 2*dockerExtra(c)
}

// demand is the threads that always want a CPU. What bench measures it marks
// itself.
func demand(c experiment.Cell) runner.Demand {
	switch c.Tool {
	case experiment.ToolTCP, experiment.ToolRequests:
		return runner.Demand{client: 1, server: 1}
	case experiment.ToolSockets:
		d := runner.Demand{client: 1, server: 1}
		if c.KernelFace != "" {
			d[client]++ // testpmd polls
		}
		return d
	}
	return runner.Demand{}
}

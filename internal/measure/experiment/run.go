// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/trial"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runner runs experiments. All but Done and Progress must be set.
type Runner struct {
	Node      *node.Node
	Inventory *inventory.Inventory
	Run       *report.ExperimentsRun
	Sink      trial.Sink
	// Env describes the machine, and the chain's interfaces and engines; nil: only
	// the machine.
	Env func(*node.Live) record.Environment
	// Done are the ids of the trials that an earlier session made.
	Done     map[string]bool
	Progress func(text string, left time.Duration)

	order int // of the next record
}

// watched is how long the machine is looked at before a cell comes up: several
// clock ticks of 10 ms.
const watched = 100 * time.Millisecond

// step is one measurement of a cell in a round; again: the second one.
type step struct {
	cell  chain.Cell
	round int
	again bool
}

// id names its trial.
func (s step) id() string {
	if s.again {
		return fmt.Sprintf("%s-r%d-again", s.cell, s.round)
	}
	return fmt.Sprintf("%s-r%d", s.cell, s.round)
}

// Measure runs every round that is left. A trial that fails is a record with
// Error; a cancelled context and a sink that fails end the run, with nothing of it
// left up.
func (r *Runner) Measure(ctx context.Context) error {
	r.order = len(r.Done)
	began, before := time.Now(), r.Run.Took
	defer func() { r.Run.Took = before + time.Since(began) }()
	r.prepareImages(ctx)
	r.findImages(ctx)
	cells := here(r.Run)
	prepareMachines(ctx, cells)
	budget := newBudget(r.Run, func() time.Duration { return before + time.Since(began) })
	for round := range r.Run.Rounds {
		order := slices.Clone(cells)
		if budget.again != nil {
			order = append(order, *budget.again)
		}
		rng := rand.New(rand.NewPCG(r.Run.Seed, uint64(round)))
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		seen := map[string]bool{}
		for i, c := range order {
			step := step{c, round, seen[c.String()]}
			seen[c.String()] = true
			if r.Done[step.id()] || round > 0 && once(r.Run, c) {
				continue
			}
			if !budget.allows(c, round, order[i:]) {
				continue // a shorter one may still fit
			}
			r.tell(c, round, order[i:])
			if err := r.cell(ctx, step); err != nil {
				return err
			}
		}
	}
	r.Run.Finished = time.Now()
	return nil
}

// prepareMachines does what is done once on a host, or once after its boot, and is
// no part of a machine's start: the kernel is fetched, and KVM is tried.
func prepareMachines(ctx context.Context, cells []chain.Cell) {
	if !slices.ContainsFunc(cells, func(c chain.Cell) bool { return c.Runtime == chain.RuntimeVM }) {
		return
	}
	if k, err := guest.FindKernel(ctx, guest.Generic); err == nil {
		_, _ = guest.Accelerator(ctx, k) // what is wrong is said by the cells
	}
}

func (r *Runner) tell(c chain.Cell, round int, ahead []chain.Cell) {
	if r.Progress == nil {
		return
	}
	left := time.Duration(r.Run.Rounds-round-1) * Estimate(r.Run) / time.Duration(r.Run.Rounds)
	for _, next := range ahead {
		left += expectIn(r.Run, next)
	}
	r.Progress(fmt.Sprintf("round %d of %d: %s", round+1, r.Run.Rounds, c), left)
}

// cell measures a cell once, and writes the record.
func (r *Runner) cell(ctx context.Context, s step) error {
	c := s.cell
	busy, err := watch(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	begin, err := host.ReadCPUTimes()
	if err != nil {
		return err
	}
	t, failed := r.bounded(ctx, c)
	if ctx.Err() != nil {
		return errors.Join(failed, ctx.Err()) // what was interrupted is measured again
	}
	if t.Env.Kernel == "" {
		t.Env = r.Env(nil)
	}
	if c.Tool != chain.ToolFrames { // the others are metered by who runs them
		end, err := host.ReadCPUTimes()
		if err != nil {
			return err
		}
		t.Env.BusyDuring, t.Env.Stolen = end.Since(begin)
	}
	if t.Start.IsZero() {
		t.Start = began
	}
	if t.Duration == 0 {
		t.Duration = time.Since(began)
	}
	t.Run, t.ID, t.Round, t.Seed, t.Order = r.Run.ID, s.id(), s.round, r.Run.Seed, r.order
	t.Transport, t.Experiment = c.Transport, named(t.Experiment, s)
	r.order++
	if failed == nil && t.Error == "" && t.Experiment.Values == nil {
		t.Experiment.Values, failed = values(t)
	}
	if failed != nil {
		t.Error = failed.Error()
	}
	t.Mark(trial.Preflight(t.Env, demand(c), busy)...)
	if c.Tool == chain.ToolCyclictest && !t.Env.Realtime && !(ownKernel(c) && c.Kernel == chain.VMKernelRT) {
		t.Mark(record.MarkNotRealtime)
	}
	return r.Sink.Write(t)
}

// named is what a trial says of its figures, for that cell.
func named(e *record.Experiment, s step) *record.Experiment {
	if e == nil {
		e = &record.Experiment{}
	}
	e.Cell = s.cell.String()
	if s.again {
		e.Cell += report.Again
	}
	return e
}

// patience is how long a cell may take beside ten trials: far longer than it does
// on a busy machine, and short enough that one that hangs does not cost the run.
const patience = time.Minute

// machinePatience is how much longer a DPDK application may take in a virtual machine,
// where EAL starts slowly, and more so where it is emulated.
const machinePatience = 2 * time.Minute

// bounded measures a cell, and gives it up where it hangs.
func (r *Runner) bounded(ctx context.Context, c chain.Cell) (record.Trial, error) {
	most := patienceOf(r.Run) + 10*r.Run.Trial
	if c.Runtime == chain.RuntimeVM && c.Face == chain.FaceDPDK {
		most += machinePatience
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	t, err := r.measure(ctx, c)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("given up after %v: %w", most, err)
	}
	return t, err
}

// watch sees what else the machine does.
func watch(ctx context.Context) (busy float64, err error) {
	begin, err := host.ReadCPUTimes()
	if err != nil {
		return 0, fmt.Errorf("load of the machine: %w", err)
	}
	if err := host.Sleep(ctx, watched); err != nil {
		return 0, err
	}
	end, err := host.ReadCPUTimes()
	if err != nil {
		return 0, fmt.Errorf("load of the machine: %w", err)
	}
	busy, _ = end.Since(begin)
	return busy, nil
}

// demand is the threads that want a CPU all the time. What bench measures it
// marks itself.
func demand(c chain.Cell) trial.Demand {
	switch c.Tool {
	case chain.ToolTCP, chain.ToolRequests:
		return trial.Demand{client: 1, server: 1}
	}
	return trial.Demand{}
}

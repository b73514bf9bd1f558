// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/bench"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/matrix"
)

// group is cells on one chain, which comes up once in a round for all of them. A virtual machine
// takes longer to boot than its trial does.
type group struct {
	cells    []experiment.Cell
	compared bool // claims compare them
	twice    bool // the only cell is measured twice in each round
}

// groups are a run's cells on this host. Those of a group take part in the same rounds.
func groups(run *report.ExperimentsRun) []group {
	var all []group
	compared, twice := claimed(run), again(run)
	at := map[string]int{} // the group of a chain
	for _, c := range here(run) {
		g := group{[]experiment.Cell{c}, compared[c.String()], twice != nil && *twice == c}
		key := fmt.Sprint(sharedChain(c), g.compared, g.twice, once(run, c))
		if i, found := at[key]; found {
			all[i].cells = append(all[i].cells, c)
			continue
		}
		at[key] = len(all)
		all = append(all, g)
	}
	return all
}

// sharedChain identifies the chain of a cell, of which other cells may be measured as well.
func sharedChain(c experiment.Cell) string {
	switch {
	case c.Tool == experiment.ToolFrames:
		c.Load = ""
		return c.String()
	case measuresPair(c):
		return pairText(c)
	}
	return c.String() // its tool takes the chain for itself
}

// measuresPair reports whether a cell is two functions that are up, and a tool between them.
func measuresPair(c experiment.Cell) bool {
	return slices.Contains([]experiment.Tool{experiment.ToolTCP, experiment.ToolRequests, experiment.ToolPingPong, experiment.ToolUDP}, c.Tool)
}

// names are the cells' names.
func (g group) names() []string {
	var names []string
	for _, c := range g.cells {
		names = append(names, c.String())
	}
	return names
}

// expect is about how long a turn takes.
func (g group) expect(run *report.ExperimentsRun) time.Duration {
	sum := time.Duration(0)
	for i, c := range g.cells {
		sum += expectIn(run, c)
		if i > 0 {
			sum -= bringUp(c) + runner.Watched
		}
	}
	return sum - runner.Watched
}

// item is a group in the runner's form.
func (r *Runner) item(g group) runner.Item {
	run, first := r.Run, g.cells[0]
	item := runner.Item{
		ID: first.String(), Title: shownBy(run, first) + ": " + first.String(), Trials: g.names(), Expect: g.expect(run), Demand: demand(first),
		Reserved: g.compared, Twice: g.twice, OwnMeter: first.Tool == experiment.ToolFrames,
		Spare:   run.Emulated && first.Runtime == chain.RuntimeVM && !g.compared,
		Measure: func(ctx context.Context, t *runner.Turn) error { return r.turn(ctx, t, g.cells) },
	}
	if more := len(g.cells) - 1; more > 0 {
		item.Title += fmt.Sprintf(" and %d more", more)
	}
	if once(run, first) {
		item.Rounds = 1
	}
	return item
}

// turn measures those of the cells on one chain that no earlier process has measured in this round.
func (r *Runner) turn(ctx context.Context, t *runner.Turn, cells []experiment.Cell) error {
	var left []experiment.Cell
	var patience time.Duration
	for _, c := range cells {
		if !r.Done[t.TrialID(c.String())] {
			left, patience = append(left, c), patience+patienceFor(r.Run, c)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.cells(bounded, left, func(c experiment.Cell, trial record.Trial, err error) error {
		if ctx.Err() != nil {
			return runner.Interrupted(ctx, err) // a resumed run measures it again
		}
		trial, err = r.complete(trial, err, t, c)
		if err != nil && bounded.Err() != nil {
			err = fmt.Errorf("given up after %v: %w", patience, err)
		}
		return t.Record(trial, demand(c), err)
	})
}

// cells measures cells on one chain, and passes on each one's trial, also a failed one.
func (r *Runner) cells(ctx context.Context, cells []experiment.Cell, done func(experiment.Cell, record.Trial, error) error) error {
	switch {
	case len(cells) == 0:
		return nil
	case cells[0].Tool == experiment.ToolFrames:
		return r.frames(ctx, cells, done)
	case measuresPair(cells[0]):
		return r.pair(ctx, cells, done)
	}
	t, err := r.measure(ctx, cells[0])
	return done(cells[0], t, err)
}

// pair measures cells on two functions that are up.
func (r *Runner) pair(ctx context.Context, cells []experiment.Cell, done func(experiment.Cell, record.Trial, error) error) error {
	live, failed := r.create(ctx, cells[0])
	for _, c := range cells {
		t, err := record.Trial{}, failed
		if err == nil {
			t, err = r.link(ctx, live, c)
			t = r.onChain(t, live)
		}
		if err := done(c, t, err); err != nil {
			return errors.Join(err, remove(ctx, live))
		}
	}
	return remove(ctx, live)
}

// onChain says where a trial was made.
func (r *Runner) onChain(t record.Trial, live *node.Live) record.Trial {
	t.Env, t.Chain = r.Env(live), chainName
	if bench.Emulated(live) {
		t.Mark(record.MarkEmulated)
	}
	return t
}

// remove takes a cell's chain down, even after an interrupt. nil: it did not come up.
func remove(ctx context.Context, live *node.Live) error {
	if live == nil {
		return nil
	}
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTime)
	defer cancel()
	return live.Remove(down)
}

// frames measures cells as dray bench would: one configuration under several loads.
func (r *Runner) frames(ctx context.Context, cells []experiment.Cell, done func(experiment.Cell, record.Trial, error) error) error {
	m := matrixOf(cells[0], r.Run.Trial)
	m.Loads = nil
	for _, c := range cells {
		m.Loads = append(m.Loads, c.Offered())
	}
	got := collector{}
	b := bench.Runner{
		Machine: r.Machine, Sink: &got, Done: map[string]bool{},
		Save: func() error { return nil },
		Run: &report.BenchRun{
			ID: r.Run.ID, Matrix: *m, Seed: r.Run.Seed, Program: r.Run.Program, Host: r.Run.Host, Rows: bench.Rows(m, r.Inventory),
		},
	}
	err := b.Measure(ctx)
	if b.Run.NoLimit != "" {
		r.Run.NoLimit = b.Run.NoLimit
	}
	for _, c := range cells {
		t, failed := got.of(c.Offered())
		if err != nil {
			failed = err
		}
		if err := done(c, t, failed); err != nil {
			return err
		}
	}
	return nil
}

// collector receives dray bench's records of one configuration in one round.
type collector struct {
	trials  []record.Trial
	ceiling *record.Ceiling // nil: unknown
}

func (c *collector) Write(t record.Trial) error {
	if t.Quantity != record.QCeiling {
		c.trials = append(c.trials, t)
	} else if t.Bench != nil && t.Bench.Ceiling != nil {
		c.ceiling = t.Bench.Ceiling
	}
	return nil
}

// of is the measurement at a load with the generator's ceiling at that time, so that its
// mark can be recomputed from the record.
func (c *collector) of(load matrix.Load) (record.Trial, error) {
	i := slices.IndexFunc(c.trials, func(t record.Trial) bool { return t.Bench != nil && t.Bench.Load == load.String() })
	if i < 0 {
		return record.Trial{}, errors.New("nothing was measured")
	}
	t := c.trials[i]
	if c.ceiling == nil {
		return t, nil
	}
	b := *t.Bench
	b.Ceiling, t.Bench = c.ceiling, &b
	most := b.Ceiling.Most(slices.Contains(t.Marks, record.MarkFewCPUs))
	if t.Delivery != nil && most > 0 && float64(t.Delivery.PacketRate) > record.GeneratorShare*most {
		t.Mark(record.MarkGeneratorBound)
	}
	return t, nil
}

// complete is a cell's trial with its figures.
func (r *Runner) complete(t record.Trial, err error, turn *runner.Turn, c experiment.Cell) (record.Trial, error) {
	if t.Env.Kernel == "" {
		t.Env = r.Env(nil)
	}
	t.ID, t.Transport, t.Experiment = turn.TrialID(c.String()), c.Transport, named(t.Experiment, turn, c)
	if err == nil && t.Error == "" && t.Experiment.Values == nil {
		t.Experiment.Values, err = values(t)
	}
	if err == nil && c.Tool == experiment.ToolFrames {
		energy(t, t.Experiment)
	}
	if c.Tool == experiment.ToolCyclictest && !t.Env.Realtime && !(ownKernel(c) && c.Kernel == chain.VMKernelRT) {
		t.Mark(record.MarkNotRealtime)
	}
	return t, err
}

// named adds the cell's name to a trial's figures.
func named(e *record.Experiment, t *runner.Turn, c experiment.Cell) *record.Experiment {
	if e == nil {
		e = &record.Experiment{}
	}
	e.Cell = c.String()
	if t.Again {
		e.Cell += report.Again
	}
	return e
}

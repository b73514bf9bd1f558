// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
)

// Runner runs a matrix. All but Done and Progress must be set.
type Runner struct {
	*runner.Machine
	Run  *report.BenchRun
	Sink runner.Sink
	// Save stores the current Run after each round.
	Save func() error
	// Done are the ids of trials made by earlier processes, and Earlier their
	// records.
	Done     map[string]bool
	Earlier  []record.Trial
	Progress func(runner.Progress)
}

// NewRun is a matrix run that has not begun. A seed of 0 means the matrix's own,
// or else a random one.
func NewRun(m *matrix.Matrix, text []byte, inv *inventory.Inventory, by report.Program, seed uint64) *report.BenchRun {
	now := time.Now()
	if seed == 0 {
		seed = m.Seed
	}
	run := &report.BenchRun{
		Schema: report.BenchSchema, ID: fmt.Sprintf("bench-%s-%s", m.Name, now.UTC().Format("20060102T150405.000")),
		Matrix: *m, Hash: Hash(text), Started: now, Seed: runner.Seed(seed), Program: by, Host: inv.Host, Rows: Rows(m, inv),
	}
	run.Baseline = Baseline(m, run.Rows)
	return run
}

// Measure measures all remaining rounds, or as many as the matrix has time for. A
// failed trial is a record with Error. A cancelled context or a failing sink ends
// the run, and nothing of it stays up.
func (r *Runner) Measure(ctx context.Context) error {
	loop := r.loop()
	keep := func() error {
		r.Run.Took = loop.Took()
		return r.Save()
	}
	loop.RoundDone = func(number int) error {
		r.Run.Rounds = max(r.Run.Rounds, number+1)
		return keep()
	}
	if err := loop.Run(ctx); err != nil {
		return errors.Join(err, keep())
	}
	r.Run.Finished = time.Now()
	return keep()
}

// loop is the matrix's runner.
func (r *Runner) loop() *runner.Runner {
	run := r.Run
	return &runner.Runner{
		OtherRuns: host.OtherMeasurements,
		ID:        run.ID, Seed: run.Seed, Rounds: run.Matrix.Repetitions, Settle: settled, Done: r.Done, Sink: r.Sink, Progress: r.Progress,
		Budget: runner.Budget{AtMost: time.Duration(run.Matrix.AtMost), Spent: run.Took, WholeRounds: true},
		Env:    func() record.Environment { return r.Env(nil) },
		Items: func(round runner.Round, rng *rand.Rand) []runner.Item {
			var items []runner.Item
			for _, v := range visits(run, round.Number, rng) {
				items = append(items, r.item(v))
			}
			return items
		},
	}
}

// item is a visit in the runner's form. Finished rounds are not repeated.
func (r *Runner) item(v visit) runner.Item {
	item := runner.Item{
		ID: v.config.String(), Title: v.title(), From: r.Run.Rounds, Expect: visitTime(r.Run, v) - runner.Watched - settled, OwnMeter: true,
		Measure: func(ctx context.Context, t *runner.Turn) error { return r.visit(ctx, t, r.remaining(v)) },
	}
	for _, load := range v.loads {
		item.Trials = append(item.Trials, v.name(load))
	}
	if v.config.Transport == "" {
		item.ID, item.OwnMeter = v.ceilingName(), false
		item.Measure = runner.Single(0, func(ctx context.Context, _ *runner.Turn) (record.Trial, error) { return ceiling(ctx, v) })
	}
	return item
}

// remaining is the visit without the trials already made.
func (r *Runner) remaining(v visit) visit {
	var left []matrix.Load
	for _, load := range v.loads {
		if !r.Done[v.id(load)] {
			left = append(left, load)
		}
	}
	v.loads = left
	return v
}

// title is the visit's name for users.
func (v visit) title() string {
	if v.config.Transport == "" {
		return "the generator alone, " + sizeText(v.config.Size)
	}
	what := fmt.Sprintf("%s, %s, %s, %s", v.config.Transport, v.config.Face, v.config.Runtime, sizeText(v.config.Size))
	if v.config.VNF != string(matrix.VNFDirect) {
		what += ", through " + v.config.VNF
	}
	return what
}

func sizeText(size string) string {
	if size == matrix.IMIX.String() {
		return "IMIX"
	}
	return size + " B"
}

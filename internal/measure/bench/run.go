// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/measure/trial"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runner runs a matrix. All but Done and Progress must be set.
type Runner struct {
	Node      *node.Node
	Inventory *inventory.Inventory
	Run       *report.BenchRun
	Sink      trial.Sink
	// Save keeps Run as it is now, whenever a round has ended.
	Save func() error
	// Env describes the machine, and the chain's interfaces and engines; nil: only
	// the machine.
	Env func(*node.Live) record.Environment
	// Done are the ids of the trials that an earlier session made, and Earlier
	// their records.
	Done     map[string]bool
	Earlier  []record.Trial
	Progress func(text string, left time.Duration)

	order   int // of the next record
	started time.Time
	before  time.Duration // that earlier sessions took
}

// Measure runs every round that is left, or as many as the matrix has time for.
// A trial that fails is a record with Error; a cancelled context and a sink that
// fails end the run, with nothing of it left up.
func (r *Runner) Measure(ctx context.Context) error {
	r.started, r.before, r.order = time.Now(), r.Run.Took, len(r.Done)
	var longest time.Duration
	for round := r.Run.Rounds; round < r.Run.Matrix.Repetitions; round++ {
		if most := time.Duration(r.Run.Matrix.AtMost); round > 0 && most > 0 && r.took()+longest > most {
			break
		}
		began := time.Now()
		if err := r.round(ctx, round); err != nil {
			return errors.Join(err, r.keep())
		}
		r.Run.Rounds = round + 1
		longest = max(longest, time.Since(began))
		if err := r.keep(); err != nil {
			return err
		}
	}
	r.Run.Finished = time.Now()
	return r.keep()
}

// took is how long the run has been at work, in all its sessions.
func (r *Runner) took() time.Duration { return r.before + time.Since(r.started) }

func (r *Runner) keep() error {
	r.Run.Took = r.took()
	return r.Save()
}

func (r *Runner) round(ctx context.Context, round int) error {
	visits := schedule(r.Run, round)
	for i, v := range visits {
		if v = r.remaining(v); v.loads == nil && v.config.Transport != "" {
			continue
		}
		r.tell(v, visits[i:])
		if err := r.visit(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// remaining is the visit without the trials that were made already.
func (r *Runner) remaining(v visit) visit {
	var left []chain.BenchLoad
	for _, load := range v.loads {
		if !r.Done[v.id(load)] {
			left = append(left, load)
		}
	}
	v.loads = left
	return v
}

// tell says where the run stands.
func (r *Runner) tell(v visit, ahead []visit) {
	if r.Progress == nil {
		return
	}
	left := time.Duration(r.Run.Matrix.Repetitions-v.round-1) * roundTime(r.Run)
	for _, next := range ahead {
		left += visitTime(r.Run, next)
	}
	if most := time.Duration(r.Run.Matrix.AtMost); most > 0 {
		left = min(left, max(0, most-r.took()))
	}
	what := "the generator alone, " + sizeText(v.config.Size)
	if v.config.Transport != "" {
		what = fmt.Sprintf("%s, %s, %s, %s", v.config.Transport, v.config.Face, v.config.Runtime, sizeText(v.config.Size))
		if v.config.VNF != string(chain.VNFDirect) {
			what += ", through " + v.config.VNF
		}
	}
	r.Progress(fmt.Sprintf("round %d of %d: %s", v.round+1, r.Run.Matrix.Repetitions, what), left)
}

func sizeText(size string) string {
	if size == chain.IMIX.String() {
		return "IMIX"
	}
	return size + " B"
}

// write completes a record and hands it on.
func (r *Runner) write(t record.Trial) error {
	t.Schema, t.Run, t.Seed, t.Order = record.Schema, r.Run.ID, r.Run.Seed, r.order
	r.order++
	if t.Marks == nil {
		t.Marks = []string{}
	}
	return r.Sink.Write(t)
}

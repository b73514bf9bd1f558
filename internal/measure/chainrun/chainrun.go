// SPDX-License-Identifier: Apache-2.0

// Package chainrun runs a chain to judge it. It measures every link, starts the
// functions' commands, and stores everything in a directory. The run can be
// resumed, and reported, from it.
package chainrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host"
	watch "github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Job is a chain with its plan for a host.
type Job struct {
	Chain     *chain.Chain
	Source    []byte // the chain file
	Inventory *inventory.Inventory
	Plan      *plan.Plan
	Node      *node.Node
}

// Run is one run of a chain. Functions is set if commands run during measurement.
type Run struct {
	Job
	Path      string // of the directory
	Options   verify.Options
	Functions []node.FunctionStatus
	// Measured means that all links were measured: their records are complete.
	Measured bool
	// Say reports progress, and Warn problems that do not end the run.
	Say      func(text string)
	Warn     func(error)
	Progress func(runner.Progress) // before each trial

	state *report.Run
	dir   *Directory // nil: nothing written yet
}

// New returns a run that has not begun.
func New(j Job, path string, o verify.Options, by report.Program) *Run {
	return &Run{Job: j, Path: path, Options: o, state: NewState(j.Chain.Name, o, by)}
}

// Begin creates the run's directory if missing, so that the records of a run that
// ends early are readable.
func (r *Run) Begin(live *node.Live) (err error) {
	links := linkRows(live)
	if r.dir != nil {
		if err := sameEngines(r.Path, r.state.Links, links); err != nil {
			return err
		}
	}
	r.state.Functions, r.state.Links = r.functionRows(live), links
	if r.dir != nil {
		return r.dir.Save()
	}
	r.dir, err = Create(r.Path, r.state, r.Source, map[string]any{report.PlanFile: live.State.Plan, report.InventoryFile: r.Inventory})
	return err
}

// Begun reports whether the run has a directory with records.
func (r *Run) Begun() bool { return r.dir != nil }

// Resumable reports whether another process can continue the run.
func (r *Run) Resumable() bool { return r.Begun() && r.state.Resumable() }

// Close unlocks the directory.
func (r *Run) Close() error {
	if r.dir == nil {
		return nil
	}
	return r.dir.Close()
}

// phase times a part of the run.
func (r *Run) phase(name string, f func() error) error {
	return Phase(r.state, name, f)
}

// Links measures every link not measured by earlier processes, and writes the
// records.
func (r *Run) Links(ctx context.Context, live *node.Live) error {
	r.lookForHolders(ctx, live)
	r.Say(fmt.Sprintf("Measuring %s, about %v, seed %d", count(len(live.State.Plan.Links), "link"),
		verify.Estimate(live.State.Plan, r.Options, r.dir.Earlier...).Round(time.Second), r.Options.Seed))
	if err := r.phase("measure", func() error { return r.links(ctx, live) }); err != nil {
		return err
	}
	r.Measured = true
	return doctor.MarkRun(r.Node.StateDir, ran(live)...)
}

func (r *Run) links(ctx context.Context, live *node.Live) error {
	_, err := verify.Links(ctx, r.input(live))
	return err
}

// input is what both links and paths are measured with.
func (r *Run) input(live *node.Live) verify.Input {
	in := Input(live)
	in.Options, in.Run, in.Env = r.Options, r.state.ID, func() record.Environment { return runner.Environment(r.Inventory, live, r.state.Dray) }
	in.Own, in.Marks = ownTime(r.Node.Cgroup(r.Chain.Name)), sharedMark(r.Functions)
	in.Sink, in.Earlier, in.Progress, in.Prolong = r.dir.Sink, r.dir.Earlier, r.Progress, r.Say
	return in
}

// Input is how the ports of a running chain are reached.
func Input(live *node.Live) verify.Input {
	return verify.Input{
		Plan: live.State.Plan, Sandboxes: live.State.Sandboxes, Device: live.Device, Live: watch.Of(live), OtherRuns: host.OtherMeasurements,
	}
}

// ownTime reads the CPU time of a chain's functions and switches; nil if nothing
// accounts it.
func ownTime(chain host.Cgroup) func() (time.Duration, error) {
	meter, err := host.NewMeter(chain)
	if err != nil {
		return nil
	}
	return func() (time.Duration, error) {
		u, err := meter.Read()
		return u.CPU, err
	}
}

// Up brings the chain up, measures it, runs the functions' commands until they
// have settled, and takes the chain down. It returns the chain as it was.
func (r *Run) Up(ctx context.Context) (live *node.Live, err error) {
	r.Say("Bringing up " + r.Chain.Name + ": " + r.Summary())
	err = r.phase(report.UpPhase, func() error {
		live, err = r.Node.Create(ctx, "run", r.Chain, r.Source, r.Plan)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = r.measureAndStart(ctx, live)
	r.Say("Taking " + r.Chain.Name + " down")
	down := r.phase("down", func() error { return live.Remove(context.WithoutCancel(ctx)) })
	return live, errors.Join(err, down)
}

func (r *Run) measureAndStart(ctx context.Context, live *node.Live) error {
	if err := r.Begin(live); err != nil {
		return err
	}
	if err := r.Links(ctx, live); err != nil {
		return err
	}
	if err := r.compute(ctx, live); err != nil {
		return err
	}
	if err := r.startAndMeasurePaths(ctx, live); err != nil {
		return err
	}
	r.Say("Starting the functions' commands")
	return r.phase("start", func() error { return r.startFunctions(ctx, live) })
}

// Finish ends the run with an exit code, by default from its verdicts, and
// returns the directory's content.
func (r *Run) Finish(live *node.Live, code int, interrupted bool) (*report.Data, error) {
	r.state.Functions = r.functionRows(live)
	data, err := Finish(r.dir, code, interrupted)
	r.Path = r.dir.Path
	if r.dir.Rescued != nil {
		r.Warn(r.dir.Rescued)
	}
	return data, err
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
)

// benchHost is the measuring host, without the CPUs that chains hold, and this
// program.
type benchHost struct {
	*runner.Machine
	program report.Program
}

func (a *app) benchHost(ctx context.Context) (*benchHost, error) {
	a.progress("Looking at this host")
	n, err := a.node()
	if err != nil {
		return nil, err
	}
	n.Progress = nil // each configuration is one line of progress
	inv, err := a.inspect(ctx, n)
	if err != nil {
		return nil, err
	}
	by, err := rundir.Program(version)
	if err != nil {
		return nil, err
	}
	return &benchHost{runner.NewMachine(n, inv, version), by}, n.LeaveOutClaimed(inv, "")
}

// takeUp checks that an interrupted run may go on here, and removes its leftovers.
func (h *benchHost) takeUp(ctx context.Context, dir string, was inventory.Host, by report.Program) error {
	if err := rundir.SameConditions(dir, was, h.Inventory.Host, by, h.program); err != nil {
		return err
	}
	_, err := h.Node.Collect(ctx)
	return err
}

// dir is the run's folder.
func (o benchOptions) dir(id string) string {
	if o.out != "" {
		return absolute(o.out)
	}
	return absolute(filepath.Join("out", id))
}

// resumeBench continues an interrupted run of a matrix or of experiments.
func (a *app) resumeBench(ctx context.Context, o benchOptions) error {
	end, err := a.benchTurn(ctx, o)
	if err != nil {
		return err
	}
	defer end()
	if err := a.collect(ctx); err != nil {
		return err
	}
	h, err := a.benchHost(ctx)
	if err != nil {
		return err
	}
	if report.IsExperiments(o.resume) {
		return a.resumeExperiments(ctx, o.resume, h)
	}
	return a.benchResume(ctx, o.resume, h)
}

// warnOfRescue warns if a run's directory has been removed.
func (a *app) warnOfRescue(rescued error) {
	if rescued != nil {
		a.warn(rescued)
	}
}

// benchEnd shows a run's results, unless err ended it.
func (a *app) benchEnd(ctx context.Context, h *benchHost, dir string, err error) error {
	a.endProgress()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: every chain is down; `dray report %[2]s` shows the results so far, `dray bench --resume %[2]s` continues", err, dir)
	}
	if err != nil {
		return err
	}
	return errors.Join(a.showDir(dir), h.MarkRun())
}

// progressOf reports the state of a run.
func (a *app) progressOf(p runner.Progress) { a.progress("  %s", p) }

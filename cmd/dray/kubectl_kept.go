// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/verdict"
)

// keptRun is a run that keeps its records in a directory, by default one for the chain of that name. It is
// nil if the user has named none, and there can be none here, as in a container with a read-only root.
func (a *app) keptRun(name string, c *cluster.Chain, o verify.Options, out string) (*cluster.Run, error) {
	dir, err := runDir(out, name, time.Now())
	if out == "" && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
		a.warn(fmt.Errorf("the records are not kept: %w; --out names a directory for them", err))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cluster.NewRun(dir, c, o, report.Program{Dray: version}), nil
}

// reportKept writes the end of a run that has begun, and its page. now is nil if the nodes' verdicts are not known.
func (a *app) reportKept(run *cluster.Run, now *cluster.Chain, verdicts []verdict.Verdict, code int, interrupted bool) error {
	data, err := run.Finish(now, verdicts, code, interrupted)
	a.warnOfRescue(run.Rescued())
	if err == nil {
		err = printTo(filepath.Join(run.Path, report.PageFile), data.Document().HTML)
	}
	if err != nil {
		return fmt.Errorf("there is no report of the records in %s: %w", run.Path, err)
	}
	return nil
}

// reportUnfinished is the error of a measurement that failed. If a signal ended it, the records so far
// are reported.
func (a *app) reportUnfinished(ctx context.Context, run *cluster.Run, failed error) error {
	if !run.Begun() || ctx.Err() == nil {
		return failed
	}
	failed = fmt.Errorf("%w; its records are in %s", failed, run.Path)
	return errors.Join(failed, a.reportKept(run, nil, nil, signalCode(ctx), true))
}

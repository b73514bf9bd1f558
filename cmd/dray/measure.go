// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
)

// measureOptions are the flags of every command that measures.
type measureOptions struct {
	out      string
	profile  string
	duration time.Duration
	rounds   int
	seed     uint64
	noWait   bool
}

func (o *measureOptions) addFlags(cmd *cobra.Command) {
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.check() }
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "directory for records and report (default out/CHAIN-TIME)")
	f.StringVar(&o.profile, "profile", string(verify.Standard), "how much to measure: quick, standard or thorough")
	f.DurationVar(&o.duration, "duration", 0, "length of each trial (default: derived from the requirement)")
	f.IntVar(&o.rounds, "rounds", 0, "rounds of trials (default: the profile's, and four times as many if those decide nothing)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the random order (default: a new one, which is printed)")
	addNoWaitFlag(cmd, &o.noWait)
}

// check returns usage errors for bad values.
func (o *measureOptions) check() error {
	switch _, err := verify.ParseProfile(o.profile); {
	case err != nil:
		return usageError("--profile: %v", err)
	case o.duration != 0 && o.duration < time.Second:
		return usageError("--duration %v is too short: the instruments need at least 1s", o.duration)
	case o.rounds < 0:
		return usageError("--rounds %d is negative", o.rounds)
	}
	return nil
}

// options converts the flags for the measurement.
func (o *measureOptions) options() verify.Options {
	return verify.Options{Profile: verify.Profile(o.profile), Duration: o.duration, Rounds: o.rounds, Seed: runner.Seed(o.seed)}
}

// newRun is a new run of a planned chain.
func (a *app) newRun(ctx context.Context, j chainrun.Job, opts measureOptions) (*chainrun.Run, error) {
	if err := doctor.TryInstruments(ctx, j.Inventory, instruments()); err != nil {
		return nil, err
	}
	dir, err := runDir(opts.out, j.Chain.Name, time.Now())
	if err != nil {
		return nil, err
	}
	by, err := rundir.Program(version)
	if err != nil {
		return nil, err
	}
	r := chainrun.New(j, dir, opts.options(), by)
	a.attend(r)
	return r, nil
}

// attend reports what a run does.
func (a *app) attend(r *chainrun.Run) {
	r.Say = func(text string) { a.progress("%s", text) }
	r.Warn = a.warn
	r.Progress = a.progressOf
}

// finish writes the end of a run, and shows its report. It returns the command's
// error: failed, if something went wrong, or the verdicts' exit code.
func (a *app) finish(ctx context.Context, r *chainrun.Run, live *node.Live, failed error) error {
	a.endProgress()
	if failed != nil && ctx.Err() != nil {
		failed = a.interrupted(ctx, r, failed)
	}
	if live == nil || failed != nil && ctx.Err() == nil && !r.Measured {
		return errors.Join(failed, r.Close())
	}
	code := exitOK
	if failed != nil {
		code = exitCode(failed, io.Discard)
	}
	data, err := r.Finish(live, code, failed != nil && ctx.Err() != nil)
	if err = errors.Join(err, r.Close()); err != nil {
		return errors.Join(failed, err)
	}
	err = errors.Join(failed, a.show(data.Dir, schemaRun, data.Document()))
	if code := data.ExitCode(); failed == nil && code != exitOK {
		return &codeError{code, err}
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/experiments"
	"github.com/drayage/dray/internal/measure/bench"
	"github.com/drayage/dray/internal/measure/published"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/matrix"
)

const benchLong = `Measure a matrix: transports × faces × runtimes × frame sizes × loads × VNFs.
In each round, every configuration is brought up as a chain of its own, offered
every load, and taken down again, in a new random order. The result is one table,
records, and one HTML page.

MATRIX is a file with ` + "`kind: Bench`" + ` (docs/bench.md), or ` + "`quick`" + `, the built-in
matrix: every transport of this host in under three minutes on two cores. A
configuration that the host cannot run is a row with the reason.

MATRIX may also be a built-in experiment, such as k17-fig15 (--list names them),
or a file with ` + "`kind: Experiment`" + ` (docs/experiments.md): its published figures
are printed next to those measured here. --all measures every published one onto one
page. Rows that need kernel features which this host lacks are measured in a lab
guest (dray lab --help), and marked so; --no-lab leaves those rows out. With
--containers docker, Docker containers take the place of runc containers.

The same command continues an interrupted run, and so does --resume with its
directory: no trial is measured twice. However dray ends, ` + "`dray gc`" + ` removes what it left; so does the resumed run.
Only one dray at a time measures on a host: another one waits its turn, or fails
at once with --no-wait.`

const benchExample = `  dray bench quick
  dray bench quick --dry-run
  dray bench matrix.yaml --out out/mine --seed 7
  dray bench --resume out/mine
  dray bench quick --json > quick.json
  dray bench v19-switches --dry-run
  dray bench --all --profile quick
  dray bench n16 --containers docker
  dray bench --list`

// benchOptions are the flags of dray bench.
type benchOptions struct {
	out, resume       string
	seed              uint64
	profile           string
	rounds            uint16 // of experiments; 0: the profile's
	containers        string // the runtime of experiments' containers
	list, dry, afresh bool
	all, noLab        bool
	noWait            bool
}

func (a *app) benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:     "bench MATRIX",
		Short:   "Compare transports by a matrix of measurements: one table, one page",
		Long:    benchLong,
		Example: benchExample,
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			switch {
			case o.resume != "" && changed(cmd, "out", "seed", "profile", "rounds", "containers", "dry-run", "afresh", "no-lab"):
				return usageError("--resume continues the run with its own settings: give no other flag")
			case o.list:
				return a.benchList(cmd.Context())
			case o.all && (len(argv) > 0 || o.resume != ""):
				return usageError("--all measures every published experiment: give no name and no --resume")
			case o.all:
				list, err := findExperiments(experiments.Names())
				if err != nil {
					return err
				}
				return a.benchExperiments(cmd.Context(), list, o)
			case o.resume != "" && len(argv) == 0:
				return a.resumeBench(cmd.Context(), o)
			case o.resume != "":
				return usageError("--resume continues the matrix in its directory: give no matrix")
			case len(argv) == 0:
				return usageError("name a matrix: a file, or the built-in matrix quick; `dray bench --help` has examples")
			}
			return a.benchNamed(cmd.Context(), argv[0], o, changed(cmd, "profile", "rounds", "containers"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "directory for records and report (default out/bench-NAME-TIME)")
	f.StringVar(&o.resume, "resume", "", "continue the interrupted run in this directory")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the random order (default: the matrix's, or a new one, which is printed)")
	f.BoolVar(&o.list, "list", false, "list the built-in matrices and experiments, and what this host can measure")
	f.BoolVar(&o.all, "all", false, "measure every published experiment")
	f.StringVar(&o.profile, "profile", published.Quick, "how long to measure experiments: quick or paper")
	f.Uint16Var(&o.rounds, "rounds", 0, "measure experiments so many times (default: the profile's rounds; claims need at least five)")
	f.StringVar(&o.containers, "containers", string(chain.RuntimeRunc), "what runs the containers of experiments: runc or docker, in the images dray-debian and dray-vnf")
	f.BoolVar(&o.noLab, "no-lab", false, "boot no lab guest; skip what this host's kernel cannot run")
	f.BoolVar(&o.dry, "dry-run", false, "print what would be measured, and roughly how long it takes")
	addNoWaitFlag(cmd, &o.noWait)
	f.BoolVar(&o.afresh, "afresh", false, "start a new run even if an interrupted run of the same matrix exists")
	return cmd
}

// changed reports whether one of the flags was given.
func changed(cmd *cobra.Command, names ...string) bool {
	return slices.ContainsFunc(names, cmd.Flags().Changed)
}

// benchNamed measures a published experiment or a matrix. profiled means that the
// user said how long, or in which containers.
func (a *app) benchNamed(ctx context.Context, name string, o benchOptions, profiled bool) error {
	e, text, err := findExperiment(ctx, name)
	switch {
	case err != nil:
		return err
	case e != nil:
		return a.benchExperiments(ctx, []experiment.Experiment{*e}, o)
	case profiled:
		return usageError("--profile, --rounds and --containers are for experiments: a matrix states its own duration and runtimes")
	case o.noLab:
		return usageError("--no-lab is for experiments: a matrix never uses the lab")
	}
	return a.bench(ctx, name, text, o)
}

// benchTurn waits for this dray's turn to measure, if it will measure anything.
func (a *app) benchTurn(ctx context.Context, o benchOptions) (end func(), err error) {
	if o.dry {
		return func() {}, nil
	}
	return a.awaitTurn(ctx, "bench", o.noWait)
}

func (a *app) bench(ctx context.Context, name string, text []byte, o benchOptions) error {
	m, err := matrix.Parse(name, text)
	if err != nil {
		return err
	}
	end, err := a.benchTurn(ctx, o)
	if err != nil {
		return err
	}
	defer end()
	h, err := a.benchHost(ctx)
	if err != nil {
		return err
	}
	run := bench.NewRun(m, text, h.Inventory, h.program, o.seed)
	if o.dry {
		return a.benchPlan(run)
	}
	if o.out == "" && !o.afresh {
		if dir := bench.Interrupted("out", run.Hash, run.Program, h.Inventory.Host.BootID, o.seed); dir != "" {
			a.progress("Continuing the interrupted run in %s (--afresh starts a new one)", dir)
			return a.benchResume(ctx, dir, h)
		}
	}
	if bench.Runnable(run.Rows) == 0 {
		return errors.Join(a.benchPlan(run), errors.New("this host can run no configuration of the matrix; the table above gives the reasons"))
	}
	s, err := bench.Begin(o.dir(run.ID), run, text)
	if err != nil {
		return err
	}
	return a.benchMeasure(ctx, s, h)
}

func (a *app) benchResume(ctx context.Context, dir string, h *benchHost) error {
	s, err := bench.Resume(absolute(dir))
	if err != nil {
		return err
	}
	if err := h.takeUp(ctx, dir, s.Run.Host, s.Run.Program); err != nil {
		return errors.Join(s.Close(), err)
	}
	return a.benchMeasure(ctx, s, h)
}

// benchMeasure measures the rest of a run, and shows all its results.
func (a *app) benchMeasure(ctx context.Context, s *bench.Dir, h *benchHost) error {
	a.progress("Measuring %s of matrix %s into %s, about %v, seed %d", count(bench.Runnable(s.Run.Rows), "configuration"), s.Run.Matrix.Name, s.Path,
		bench.Estimate(s.Run).Round(time.Second), s.Run.Seed)
	r := &bench.Runner{
		Machine: h.Machine, Run: s.Run, Sink: s.Sink, Done: s.Done, Earlier: s.Earlier, Save: s.Save, Progress: a.progressOf,
	}
	err := errors.Join(r.Measure(ctx), s.Close())
	a.warnOfRescue(s.Rescued)
	return a.benchEnd(ctx, h, s.Path, err)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/report/document"
)

const runLong = `Plan the chain, create its sandboxes and links, measure every link over the
functions' own ports, start the functions' commands, write the report, and take
everything down again.

Links are measured before the functions' commands start, under the load that
the chain file declares. The verdict of each requirement is met, missed or not
measurable; the exit code gives the worst one (see ` + "`dray --help`" + `). If a
verdict is still open, its measurement is extended to four times its length,
unless --rounds or --profile quick limit it.

Functions with compute are measured before their commands start, while a thread
spins in every function of their CPUs.

Ctrl-C takes the chain down and reports the measurements so far; --resume
continues such a run with its seed, and measures only the rest. The host, this
program and the plan must be the same.

Only one dray at a time measures on a host: another one waits its turn, or fails
at once with --no-wait.`

func (a *app) runCommand() *cobra.Command {
	var warn, resume bool
	var opts measureOptions
	cmd := &cobra.Command{
		Use:     "run FILE | --resume [DIR]",
		Short:   "Bring a chain up, measure and judge every link, report, and take the chain down",
		Long:    runLong,
		Example: "  dray run examples/f1-split.yaml\n  dray run examples/f1-split.yaml --profile quick --json\n  dray run --resume out/f1-split-20260101T120000",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			switch {
			case resume && changed(cmd, "out", "profile", "duration", "rounds", "seed", "warn"):
				return usageError("--resume continues a run with its own settings: give no other flag that sets how to measure")
			case resume:
				return a.resumeRun(cmd.Context(), strings.Join(argv, ""), opts.noWait)
			case len(argv) == 0:
				return usageError("name a chain file; usage: %s", cmd.UseLine())
			}
			j, err := a.read(cmd.Context(), argv[0], warn)
			if err != nil {
				return err
			}
			end, err := a.awaitTurn(cmd.Context(), "run", opts.noWait)
			if err != nil {
				return err
			}
			defer end()
			if err := a.planToRun(cmd.Context(), j); err != nil {
				return err
			}
			r, err := a.newRun(cmd.Context(), *j, opts)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), r)
		},
	}
	addWarnFlag(cmd, &warn)
	opts.addFlags(cmd)
	cmd.Flags().BoolVar(&resume, "resume", false, "continue the interrupted run in DIR, or the newest one in out/")
	return cmd
}

func (a *app) run(ctx context.Context, r *chainrun.Run) error {
	a.warnOfCalibration(r.Inventory)
	live, err := r.Up(ctx)
	return a.finish(ctx, r, live, err)
}

// resumeRun continues an interrupted run; dir may be empty.
func (a *app) resumeRun(ctx context.Context, dir string, noWait bool) error {
	if dir == "" {
		if dir = chainrun.Interrupted("out"); dir == "" {
			return errors.New("out/ has no interrupted run; name the run's directory: dray run --resume DIR")
		}
	}
	end, err := a.awaitTurn(ctx, "run", noWait)
	if err != nil {
		return err
	}
	defer end()
	by, err := rundir.Program(version)
	if err != nil {
		return err
	}
	r, err := chainrun.Resume(absolute(dir), by, func(file string) (chainrun.Job, error) {
		if err := a.collect(ctx); err != nil {
			return chainrun.Job{}, err
		}
		j, err := a.read(ctx, file, true) // what is infeasible was accepted when the run began
		if err != nil {
			return chainrun.Job{}, err
		}
		if err := a.planToRun(ctx, j); err != nil {
			return chainrun.Job{}, err
		}
		return *j, doctor.TryInstruments(ctx, j.Inventory, instruments())
	})
	if err != nil {
		return err
	}
	a.attend(r)
	a.progress("Continuing the run in %s", dir)
	return a.run(ctx, r)
}

// collect removes what a killed run left, before this host is looked at: its leftovers
// hold huge pages and virtual functions.
func (a *app) collect(ctx context.Context) error {
	n, err := a.node()
	if err == nil {
		_, err = n.Collect(ctx)
	}
	return err
}

// interrupted is the error of a run that a signal ended.
func (a *app) interrupted(ctx context.Context, r *chainrun.Run, err error) error {
	text := "nothing was measured"
	if r.Begun() {
		text = fmt.Sprintf("its records are in %s", r.Path)
	}
	if r.Resumable() {
		text += fmt.Sprintf("; `dray run --resume %s` continues the run", r.Path)
	}
	if !errors.Is(err, runner.ErrInterrupted) {
		err = fmt.Errorf("%w: %w", runner.ErrInterrupted, err)
	}
	return &codeError{signalCode(ctx), fmt.Errorf("%w; %s", err, text)}
}

// page shows a directory of results.
type page interface {
	HTML(w io.Writer) error
	JSON(w io.Writer) error
	Text(w io.Writer, width int) error
}

// show prints the tables of a directory, and writes its page.
func (a *app) show(dir, schema string, p page) error {
	return errors.Join(printTo(filepath.Join(dir, report.PageFile), p.HTML), a.printTables(schema, p))
}

// printTables prints a page's tables.
func (a *app) printTables(schema string, p page) error {
	a.endProgress()
	if a.json {
		return withoutClosedOutput(a.printPage(schema, p.JSON))
	}
	return withoutClosedOutput(a.printText(p.Text))
}

// showDir shows a directory's content.
func (a *app) showDir(dir string) error {
	p, schema, err := loadPage(dir)
	if err != nil {
		return err
	}
	return a.show(dir, schema, p)
}

// loadPage reads a directory's content: a run, a bench or experiments.
func loadPage(dir string) (p page, schema string, err error) {
	var data interface{ Document() *document.Document }
	switch {
	case report.IsBench(dir):
		schema = schemaBench
		data, err = report.LoadBench(dir)
	case report.IsExperiments(dir):
		schema = schemaExperiments
		data, err = report.LoadExperiments(dir)
	default:
		schema = schemaRun
		data, err = report.Load(dir)
	}
	if err != nil {
		return nil, "", err
	}
	return data.Document(), schema, nil
}

func (a *app) reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "report DIR",
		Short:   "Rebuild a run's tables and page from its records",
		Example: "  dray report out/f1-split-20260101T120000",
		Args:    args(cobra.ExactArgs(1)),
		RunE:    func(_ *cobra.Command, argv []string) error { return a.reportDir(argv[0]) },
	}
}

// reportDir shows a directory again. A read-only directory is no failure: its
// tables are still printed.
func (a *app) reportDir(dir string) error {
	p, schema, err := loadPage(dir)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, report.PageFile)
	err = printTo(file, p.HTML)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		fmt.Fprintf(a.err, "dray: the page %s was not written: %v\n", file, err)
		err = nil
	}
	return errors.Join(err, a.printTables(schema, p))
}

// runDir is the directory of a run's records and report.
func runDir(asked, chainName string, now time.Time) (string, error) {
	dir := asked
	if dir == "" {
		dir = filepath.Join("out", chainrun.ID(chainName, now))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return "", errors.Join(err, fmt.Errorf("%s is not empty: name a new directory with --out", dir))
	}
	return absolute(dir), nil
}

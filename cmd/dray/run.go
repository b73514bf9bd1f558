// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/report"
)

const runLong = `Plan the chain, make its sandboxes and links, measure every link over the
functions' own ports, start the functions' commands, write the report, and take
everything down again: the main job.

Links are measured before the functions' commands start, under the load that
the chain file declares. The verdict of each requirement is met, missed or not
measurable; the exit code tells which is the worst (see ` + "`dray --help`" + `). What is
undecided at first is measured four times as long, unless --rounds or
--profile quick say how much to measure.`

func (a *app) runCommand() *cobra.Command {
	var warn bool
	var opts measureOptions
	cmd := &cobra.Command{
		Use:     "run FILE",
		Short:   "Bring a chain up, measure and judge every link, report, take it down",
		Long:    runLong,
		Example: "  dray run examples/f1-split.yaml\n  dray run examples/f1-split.yaml --profile quick --json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			j, err := a.prepare(cmd.Context(), argv[0], warn)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), j, opts)
		},
	}
	addWarnFlag(cmd, &warn)
	opts.addFlags(cmd)
	return cmd
}

func (a *app) run(ctx context.Context, j *job, opts measureOptions) error {
	m, err := a.newMeasurement(j, opts)
	if err != nil {
		return err
	}
	a.progress("Bringing up %s: %s", j.chain.Name, j.summary())
	var live *node.Live
	err = m.phase("up", func() error {
		live, err = j.node.Create(ctx, "run", j.chain, j.source, j.plan)
		return err
	})
	if err != nil {
		return err
	}
	err = m.measureAndStart(ctx, live)
	a.progress("Taking %s down", j.chain.Name)
	down := m.phase("down", func() error { return live.Remove(context.WithoutCancel(ctx)) })
	if err = errors.Join(err, down); !m.measured {
		return err
	}
	return m.finish(live, err)
}

// measureAndStart measures the links, and then starts the functions' commands
// until they have settled.
func (m *measurement) measureAndStart(ctx context.Context, live *node.Live) error {
	// What is known now, so that also the records of a run that ends here can be read.
	if err := m.writeRun(live); err != nil {
		return err
	}
	if err := m.phase("measure", func() error { return m.links(ctx, live) }); err != nil {
		return err
	}
	m.app.progress("Starting the functions' commands")
	return m.phase("start", func() error { return m.startFunctions(ctx, live) })
}

// startFunctions starts every command, waits until all have settled, stops
// them, and keeps what they wrote.
func (m *measurement) startFunctions(ctx context.Context, live *node.Live) error {
	s, err := live.Supervise()
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(running) }()
	failed := s.Settled(ctx, settle)
	functions, _, err := live.Status()
	if err == nil {
		m.functions = functions
	}
	if failed != nil {
		failed = withLogs(live, failed)
	}
	stop()
	if hung := <-stopped; hung != nil { // if it still does, the chain's removal fails
		fmt.Fprintln(m.app.err, "dray: warning:", hung)
	}
	return errors.Join(failed, err, m.keepLogs(live))
}

// keepLogs copies what the functions wrote into the run directory.
func (m *measurement) keepLogs(live *node.Live) error {
	for _, f := range live.Chain.Functions {
		if err := copyFile(live.LogFile(f.Name), filepath.Join(m.dir, "log", f.Name+".log")); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file that need not exist.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return printTo(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// finish writes the run directory's last files and the page, and prints the
// verdicts. It returns what the command ends with: failed, which says that
// something went wrong after the links were measured, or the verdicts' exit code.
func (m *measurement) finish(live *node.Live, failed error) error {
	data, err := report.Load(m.dir) // run.json is there since before the first trial
	if err != nil {
		return errors.Join(failed, err)
	}
	m.run.ExitCode = data.ExitCode()
	if failed != nil {
		m.run.ExitCode = exitError
	}
	if err := m.writeRun(live); err != nil {
		return errors.Join(failed, err)
	}
	data.Run = m.run
	if err := m.app.show(data.Dir, data); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	if code := data.ExitCode(); code != exitOK {
		return &codeError{Code: code}
	}
	return nil
}

// page is what a directory of results is shown as.
type page interface {
	HTML(w io.Writer) error
	JSON(w io.Writer) error
	Text(w io.Writer, width int) error
}

// show writes the page of a directory, and prints its tables.
func (a *app) show(dir string, p page) error {
	if err := printTo(filepath.Join(dir, report.PageFile), p.HTML); err != nil {
		return err
	}
	a.endProgress()
	if a.json {
		return p.JSON(a.out)
	}
	return p.Text(a.out, a.width())
}

// showDir shows what a directory holds: a run, a bench or experiments.
func (a *app) showDir(dir string) error {
	var p page
	var err error
	switch {
	case report.IsBench(dir):
		p, err = report.LoadBench(dir)
	case report.IsExperiments(dir):
		p, err = report.LoadExperiments(dir)
	default:
		p, err = report.Load(dir)
	}
	if err != nil {
		return err
	}
	return a.show(dir, p)
}

func (a *app) reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "report DIR",
		Short:   "Make the tables and the page of a run again, from its records alone",
		Example: "  dray report out/f1-split-20260101T120000",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, argv []string) error {
			return a.showDir(argv[0])
		},
	}
}

// runDir is where the records and the report of a run go.
func runDir(asked, chainName string, now time.Time) (string, error) {
	dir := asked
	if dir == "" {
		dir = filepath.Join("out", fmt.Sprintf("%s-%s", chainName, now.UTC().Format("20060102T150405.000")))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return "", errors.Join(err, fmt.Errorf("%s is not empty; name a new directory with --out", dir))
	}
	return absolute(dir), nil
}

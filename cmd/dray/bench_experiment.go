// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/experiments"
	"github.com/drayage/dray/internal/measure/published"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// findExperiments are the built-in experiments with these names.
func findExperiments(names []string) ([]experiment.Experiment, error) {
	var list []experiment.Experiment
	for _, name := range names {
		e, err := experiments.Find(name)
		if err != nil {
			return nil, err
		}
		list = append(list, *e)
	}
	return list, nil
}

// findExperiment is the built-in experiment of that name, or one from a file; nil:
// the text is a matrix. It reads a file only once, since it may be a pipe.
func findExperiment(ctx context.Context, name string) (*experiment.Experiment, []byte, error) {
	if e, err := experiments.Find(name); e != nil || err != nil {
		return e, nil, err
	}
	if name == "quick" {
		return nil, experiments.BenchQuick(), nil
	}
	text, err := readFile(ctx, name)
	if err != nil || !experiment.Is(text) {
		return nil, text, err
	}
	e, err := experiment.Parse(name, text)
	return e, text, err
}

// inContainers are the experiments with containers of that runtime.
func inContainers(list []experiment.Experiment, runtime string) ([]experiment.Experiment, error) {
	switch chain.RuntimeName(runtime) {
	case chain.RuntimeRunc:
		return list, nil
	case chain.RuntimeDocker:
		var changed []experiment.Experiment
		for _, e := range list {
			changed = append(changed, e.InDocker())
		}
		return changed, nil
	}
	return nil, usageError("--containers %s: write %s or %s", runtime, chain.RuntimeRunc, chain.RuntimeDocker)
}

// benchExperiments measures published experiments.
func (a *app) benchExperiments(ctx context.Context, list []experiment.Experiment, o benchOptions) error {
	if o.afresh {
		return usageError("--afresh is for a matrix: experiments always start a new run, unless --resume DIR continues one")
	}
	list, err := inContainers(list, o.containers)
	if err != nil {
		return err
	}
	profile, err := published.FindProfile(o.profile)
	if err != nil {
		return usageError("%v", err)
	}
	if o.rounds > 0 {
		profile.Rounds = int(o.rounds)
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
	run := published.NewRun(list, profile, h.Inventory, h.program, o.seed)
	published.Assign(ctx, run, h.Inventory, published.LabUse{Off: o.noLab, Dry: o.dry, Say: a.progress})
	if o.dry {
		return a.experimentPlan(run)
	}
	s, err := published.Begin(o.dir(run.ID), run)
	if err != nil {
		return err
	}
	return a.measureExperiments(ctx, s, h)
}

// experimentPlan prints what a run will do.
func (a *app) experimentPlan(run *report.ExperimentsRun) error {
	a.endProgress()
	about := published.Estimate(run)
	if a.json {
		return a.printJSON(schemaExperimentsPlan, struct {
			*report.ExperimentsRun
			Seconds float64 `json:"seconds"` // estimate
		}{run, about.Seconds()})
	}
	fmt.Fprintf(a.out, "%s, profile %s: %s, trials of %v, about %v\n", count(len(run.Experiments), "experiment"), run.Profile,
		count(run.Rounds, "round"), run.Trial, about.Round(time.Second))
	rows, inGuest, notRun := published.Planned(run)
	fmt.Fprintf(a.out, "%s: %d to be measured on this host, %d in lab guests, %d not run here\n", count(rows, "row"), rows-inGuest-notRun, inGuest, notRun)
	for _, e := range run.Experiments {
		fmt.Fprintf(a.out, "%s: %s\n", report.Plain(e.Name), report.Plain(e.Title))
		for _, r := range e.Rows {
			fmt.Fprintf(a.out, "  %s: %s\n", report.Plain(r.Title), published.HowMeasured(run, r))
		}
	}
	return nil
}

func (a *app) resumeExperiments(ctx context.Context, dir string, h *benchHost) error {
	s, err := published.Resume(absolute(dir))
	if err != nil {
		return err
	}
	if s.Run.Part {
		if err = published.Adopt(s.Run, h.program, h.Inventory); err == nil {
			err = s.Save()
		}
	}
	if err == nil {
		err = h.takeUp(ctx, dir, s.Run.Host, s.Run.Program)
	}
	if err != nil {
		return errors.Join(s.Close(), err)
	}
	return a.measureExperiments(ctx, s, h)
}

// measureExperiments measures the rest of a run, and shows all its results.
func (a *app) measureExperiments(ctx context.Context, s *published.Dir, h *benchHost) error {
	limit := ""
	if s.Run.AtMost > 0 {
		limit = fmt.Sprintf(", at most %v", s.Run.AtMost)
	}
	a.progress("Measuring %s, profile %s, into %s, about %v%s, seed %d", count(len(s.Run.Experiments), "experiment"), s.Run.Profile, s.Path,
		published.Estimate(s.Run).Round(time.Second), limit, s.Run.Seed)
	r := &published.Runner{
		Machine: h.Machine, Run: s.Run, Sink: s.Sink, Done: s.Done, Progress: a.progressOf,
	}
	err := published.MeasureInLab(ctx, s, a.progress)
	if err == nil {
		err = r.Measure(ctx)
	}
	err = errors.Join(err, s.Save(), s.Close())
	a.warnOfRescue(s.Rescued)
	if err == nil && s.Run.Part {
		return nil // the run that it is part of shows it
	}
	return a.benchEnd(ctx, h, s.Path, err)
}

// experimentItem is an experiment as --list prints it.
type experimentItem struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Source string `json:"source"`
	Rows   int    `json:"rows"`
}

func experimentItems() ([]experimentItem, error) {
	list, err := findExperiments(experiments.BuiltIn())
	var items []experimentItem
	for _, e := range list {
		items = append(items, experimentItem{e.Name, e.Title, e.Source, len(e.Rows)})
	}
	return items, err
}

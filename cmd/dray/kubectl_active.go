// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/result/verdict"
)

// activeFlags are the flags of `kubectl dray verify --active`.
type activeFlags struct {
	on      bool
	image   string
	profile string
	seed    uint64
	out     string
	record  bool
	paths   bool
	timeout time.Duration // until the pods run
}

func (f *activeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "active", false, "measure with traffic of its own, on a copy of the chain")
	flags.StringVar(&f.image, "image", "", "with --active: image of draygen (default: next to the installed dray-node's)")
	flags.StringVar(&f.profile, "profile", string(verify.Standard), "with --active: how much to measure: quick, standard or thorough")
	flags.Uint64Var(&f.seed, "seed", 0, "with --active: seed of the random order (default: a new one, which is printed)")
	flags.StringVar(&f.out, "out", "", "with --active: directory for records and report (default out/CHAIN-TIME)")
	flags.BoolVar(&f.paths, "paths", false, "with --active: also measure paths, through copies of their functions' own pods")
	flags.BoolVar(&f.record, "record", false, "with --active: also write the outcome to the chain's condition Verified")
}

func (f *activeFlags) check(cmd *cobra.Command) error {
	if _, err := verify.ParseProfile(f.profile); err != nil {
		return usageError("--profile: %v", err)
	}
	for _, name := range []string{"image", "profile", "seed", "out", "record", "paths"} {
		if !f.on && cmd.Flags().Changed(name) {
			return usageError("--%s has no effect without --active", name)
		}
	}
	return nil
}

// activeRun is how an active verification measured.
type activeRun struct {
	Profile   verify.Profile `json:"profile"`
	Seed      uint64         `json:"seed"`
	Directory string         `json:"directory,omitempty"` // with the records; "": they are not kept
}

func (f *activeFlags) options() verify.Options {
	return verify.Options{Profile: verify.Profile(f.profile), Seed: runner.Seed(f.seed)}
}

// verifyActively measures a copy of a chain, and judges it.
func (a *app) verifyActively(ctx context.Context, k *cluster.Kubectl, name string, f activeFlags) (err error) {
	c, err := k.Chain(ctx, name)
	if err != nil {
		return err
	}
	o := f.options()
	run, err := a.keptRun(name, c, o, f.out)
	if err != nil {
		return err
	}
	defer func() { err = andThen(err, run.Close()) }()
	shown, err := a.measureCopy(ctx, k, c, run, o, f)
	if f.record && ctx.Err() == nil {
		err = andThen(err, recordOutcome(ctx, k, c, shown, err))
	}
	if shown == nil {
		return err
	}
	return andThen(a.showChains([]clusterChain{*shown}), err)
}

// measureCopy measures a copy of a chain, and deletes it. There may be both an outcome and an error.
func (a *app) measureCopy(ctx context.Context, k *cluster.Kubectl, c *cluster.Chain, run *cluster.Run, o verify.Options, f activeFlags) (shown *clusterChain, err error) {
	if err := runsOnNodes(c); err != nil {
		return nil, err
	}
	expected, err := k.Expect(ctx, c, o)
	if err != nil {
		return nil, err
	}
	s, err := k.StandIn(ctx, c, f.image, lifeOf(f.timeout, expected), nil)
	if err != nil {
		return nil, err
	}
	how := a.activeWith(run, o)
	var running *cluster.Chain
	var verdicts []verdict.Verdict
	measured, err := a.onCopy(ctx, k, run, s, f.timeout, func(as *cluster.Chain) (err error) {
		a.progress("Measuring for about %v, seed %d", expected.Round(time.Second), o.Seed)
		running = as
		verdicts, err = k.Measure(ctx, s, as, how)
		return err
	})
	if !measured {
		return nil, a.reportUnfinished(ctx, run, err)
	}
	if err == nil && len(c.Status.Paths) > 0 { // the first copy is gone
		var onPaths []verdict.Verdict
		if onPaths, err = a.measurePaths(ctx, k, c, run, how, f); ctx.Err() != nil {
			return nil, a.reportUnfinished(ctx, run, err)
		}
		verdicts = append(verdicts, onPaths...)
	}
	shown, later := a.judgedCopy(ctx, k, c, running, run, verdicts, o)
	return shown, andThen(err, later)
}

// judgedCopy is a chain with the verdicts on its copy. Its report is written.
func (a *app) judgedCopy(ctx context.Context, k *cluster.Kubectl, c, running *cluster.Chain, run *cluster.Run, verdicts []verdict.Verdict, o verify.Options) (*clusterChain, error) {
	// What the nodes see of the chain itself is shown as it is now.
	now, err := k.ChainIn(ctx, c.Metadata.Namespace, c.Metadata.Name)
	if err != nil {
		return nil, err
	}
	after := *now
	if after.Status.Links, err = now.Measured(running, verdicts); err != nil {
		return nil, err
	}
	after.Status.Paths = now.MeasuredPaths(verdicts)
	measured := clusterChainOf(&after)
	measured.Active = &activeRun{Profile: o.Profile, Seed: o.Seed}
	if run.Begun() {
		err = a.reportKept(run, now, verdicts, measured.Exit, false)
		measured.Active.Directory = run.Path
	}
	return &measured, err
}

// activeWith is how copies are measured.
func (a *app) activeWith(run *cluster.Run, o verify.Options) cluster.Active {
	return cluster.Active{Options: o, Progress: a.progressOf, Prolong: func(text string) { a.progress("%s", text) }, Run: run}
}

// onCopy creates a copy of a chain, measures it, and deletes it. It may be measured although there is an error: then it
// is not deleted.
func (a *app) onCopy(ctx context.Context, k *cluster.Kubectl, run *cluster.Run, s *cluster.StandIn, timeout time.Duration, measure func(running *cluster.Chain) error) (measured bool, err error) {
	var created []cluster.Object
	var running *cluster.Chain
	defer func() { err = andThen(err, a.endClusterRun(ctx, k, created, false)) }()
	err = run.Phase("start", func() (err error) {
		if created, err = a.createStandIn(ctx, k, s); err == nil {
			running, err = a.awaitStandIn(ctx, k, s, timeout)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	err = run.Phase("measure", func() error { return measure(running) })
	a.endProgress()
	return err == nil, err
}

// measurePaths measures the paths of a chain, each group on a copy of its own. A copy that does not run leaves its
// paths undecided.
func (a *app) measurePaths(ctx context.Context, k *cluster.Kubectl, c *cluster.Chain, run *cluster.Run, how cluster.Active, f activeFlags) (verdicts []verdict.Verdict, err error) {
	groups, verdicts, err := k.Paths(ctx, c, f.paths)
	if err != nil {
		return nil, err
	}
	run.Leave(verdicts)
	for _, g := range groups {
		own, err := a.measureGroup(ctx, k, c, run, how, f, g)
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err != nil && own == nil:
			own = g.Unmeasured(err)
			run.Leave(own)
		case err != nil:
			return append(verdicts, own...), err
		}
		verdicts = append(verdicts, own...)
	}
	return verdicts, nil
}

// measureGroup measures paths on a copy in which functions run their own programs.
func (a *app) measureGroup(ctx context.Context, k *cluster.Kubectl, c *cluster.Chain, run *cluster.Run, how cluster.Active, f activeFlags, g *cluster.PathGroup) (verdicts []verdict.Verdict, err error) {
	expected := g.Expect(how.Options)
	s, err := k.StandIn(ctx, c, f.image, lifeOf(f.timeout, expected), g)
	if err != nil {
		return nil, err
	}
	_, err = a.onCopy(ctx, k, run, s, f.timeout, func(as *cluster.Chain) (err error) {
		a.progress("Measuring %s for about %v%s", g.Names(), expected.Round(time.Second), orEmpty(", through ", g.Copies()))
		verdicts, err = k.MeasurePaths(ctx, s, as, g, how, func(text string) { a.progress("%s", text) })
		return err
	})
	return verdicts, err
}

// recordOutcome writes the outcome of a verification, or why there is none, to the chain.
func recordOutcome(ctx context.Context, k *cluster.Kubectl, c *cluster.Chain, shown *clusterChain, failed error) error {
	if shown == nil {
		if err := k.Record(ctx, c, verdict.NotMeasurable, true, failed.Error()); err != nil {
			return fmt.Errorf("the failure is not recorded: %w", err)
		}
		return nil
	}
	word, message := shown.outcome(time.Now())
	if err := k.Record(ctx, c, word, false, message); err != nil {
		return fmt.Errorf("the outcome is not recorded: %w", err)
	}
	return nil
}

// outcome is the verdict on a chain as a whole, and which requirements are not met.
func (s *clusterChain) outcome(now time.Time) (verdict.Word, string) {
	all := map[verdict.Word][]string{}
	for _, j := range s.judged() {
		for _, q := range j.requirements {
			all[q.Verdict] = append(all[q.Verdict], j.kind+" "+j.name+", "+q.Requirement)
		}
	}
	parts := []string{fmt.Sprintf("%d met", len(all[verdict.Met]))}
	word := verdict.Met
	for _, w := range []verdict.Word{verdict.NotMeasurable, verdict.Missed} {
		if len(all[w]) > 0 {
			word = w
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(all[w]), w, strings.Join(all[w], "; ")))
		}
	}
	return word, fmt.Sprintf("%s on %s, profile %s, seed %d", strings.Join(parts, ", "), now.UTC().Format(time.RFC3339), s.Active.Profile, s.Active.Seed)
}

// runsOnNodes is an error if a chain has no pods, which show the nodes to measure on.
func runsOnNodes(c *cluster.Chain) error {
	switch state, detail := stateOf(c); state {
	case stateReady:
		return nil
	case stateInfeasible:
		return &codeError{exitInfeasible, fmt.Errorf("chain %s is infeasible: %s", c.Name(), detail)}
	default:
		return fmt.Errorf("chain %s is %s, and a copy runs on the nodes of its pods: %s", c.Name(), state, detail)
	}
}

// lifeOf is how long a copy may be needed. A prolonged run takes several times as long as expected.
func lifeOf(timeout, expected time.Duration) time.Duration {
	return timeout + 10*time.Minute + 2*verdict.Prolonged*expected
}

// createStandIn creates a copy of a chain. It returns what it created, even if it fails.
func (a *app) createStandIn(ctx context.Context, k *cluster.Kubectl, s *cluster.StandIn) ([]cluster.Object, error) {
	abandoned, err := k.Abandoned(ctx, s)
	if err != nil {
		return nil, err
	}
	if abandoned {
		a.progress("Deleting chain %s, which a killed run left", s.Chain)
		if err := k.Delete(ctx, s.Objects); err != nil {
			return nil, err
		}
	}
	a.progress("Starting draygen in %s, as chain %s", count(len(s.Pods), "pod"), s.Chain)
	created, err := k.Apply(ctx, s.Objects)
	if err == nil && len(created) < len(s.Objects) {
		err = fmt.Errorf("another user creates chain %s at the same time", s.Chain)
	}
	return created, err
}

// awaitStandIn waits until every link of a copy has its pods, and draygen runs in them.
func (a *app) awaitStandIn(ctx context.Context, k *cluster.Kubectl, s *cluster.StandIn, timeout time.Duration) (*cluster.Chain, error) {
	var now *cluster.Chain
	deadline := time.Now().Add(timeout)
	err := every(ctx, watchInterval, -1, func(ctx context.Context) (err error) {
		if now, err = k.ChainIn(ctx, s.Namespace, s.Chain); err != nil {
			return err
		}
		wait, err := k.Awaits(ctx, s)
		if err != nil {
			return err
		}
		switch state, detail := stateOf(now); {
		case state == stateReady && wait == "":
			return errDecided
		case state == stateInfeasible:
			return runsOnNodes(now)
		case !time.Now().Before(deadline):
			return fmt.Errorf("chain %s does not run after %v: it is %s: %s%s", s.Chain, timeout, state, detail, orEmpty("; ", wait))
		}
		return nil
	})
	switch {
	case errors.Is(err, errDecided):
		return now, nil
	case err == nil:
		err = context.Cause(ctx)
	}
	return nil, err
}

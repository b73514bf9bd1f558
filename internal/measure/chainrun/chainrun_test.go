// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

var program = report.Program{Dray: "v1", Build: "b"}

// job is a chain without addresses: each of its trials is a record of a failure,
// made at once.
func job(t *testing.T) Job {
	t.Helper()
	p := &plan.Plan{Chain: "c", Functions: []plan.Function{{Name: "a", Runtime: "runc", Reason: "free"}, {Name: "b"}}, Links: []plan.Link{{
		Name: "l", Transport: "veth", MTU: 1500, Requires: chain.Requires{MTU: 1500},
		Ends: []plan.End{{Function: "a", Port: "p"}, {Function: "b", Port: "p"}},
	}}}
	return Job{
		Chain: &chain.Chain{Name: "c"}, Source: []byte("the chain"), Plan: p,
		Inventory: &inventory.Inventory{
			Host:        inventory.Host{Hostname: "h"},
			Instruments: []inventory.Item{{Name: "draygen", Version: "1"}},
			Runtimes:    []inventory.Item{{Name: "runc", Version: "1"}, {Name: "docker", Version: "1"}},
			Transports:  []inventory.Transport{{Item: inventory.Item{Name: "veth", Version: "1"}}},
		}, Node: &node.Node{StateDir: t.TempDir()},
	}
}

// measure measures a job that is up, until it has announced most trials; 0: all.
func measure(r *Run, most int) (*node.Live, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	announced := 0
	r.Say = func(string) {}
	r.Progress = func(runner.Progress) {
		if announced++; announced == most {
			cancel()
		}
	}
	live := &node.Live{Chain: r.Chain, State: node.State{Plan: r.Plan, Sandboxes: map[string]*runtime.Sandbox{"a": {}, "b": {}}}}
	_ = r.phase(report.UpPhase, func() error { return nil })
	if err := r.Begin(live); err != nil {
		return live, err
	}
	return live, r.Links(ctx, live)
}

// interrupt makes a run that was interrupted before its fifth trial.
func interrupt(t *testing.T, j Job) string {
	t.Helper()
	r := New(j, filepath.Join(t.TempDir(), "run"), verify.Options{Rounds: 3, Seed: 7}, program)
	live, err := measure(r, 5)
	if err == nil || err.Error() != "interrupted" || !errors.Is(err, runner.ErrInterrupted) || !r.Resumable() {
		t.Fatalf("resumable %v, %v", r.Resumable(), err)
	}
	if _, err := r.Finish(live, 130, true); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r.Path
}

func text(t *testing.T, d *report.Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Document().Text(&b, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInterruptedRunSaysSo(t *testing.T) {
	path := interrupt(t, job(t))
	data, err := report.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if run := data.Run; !run.Interrupted || run.ExitCode != 130 || !run.Finished.IsZero() || len(data.Trials) != 4 {
		t.Errorf("%+v with %d trials", run, len(data.Trials))
	}
	if got := text(t, data); !strings.Contains(got, "Interrupted: ") || !strings.Contains(got, "4 records") || !strings.Contains(got, "dray run --resume "+path) {
		t.Errorf("%s", got)
	}
	if found := Interrupted(filepath.Dir(path)); found != path {
		t.Errorf("found %q", found)
	}
}

// A resumed run makes the same trials as an uninterrupted one.
func TestResumedRunIsWhole(t *testing.T) {
	j := job(t)
	whole := New(j, filepath.Join(t.TempDir(), "whole"), verify.Options{Rounds: 3, Seed: 7}, program)
	live, err := measure(whole, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := whole.Finish(live, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	path := interrupt(t, j)
	r, err := Resume(path, program, func(file string) (Job, error) {
		if file != filepath.Join(path, report.ChainFile) {
			t.Errorf("the chain file is read from %s", file)
		}
		again := j
		p := *j.Plan
		p.Functions = []plan.Function{{Name: "a", Runtime: "runc", Reason: "other words"}, {Name: "b"}}
		again.Plan = &p
		return again, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if all, left := verify.Estimate(j.Plan, r.Options), verify.Estimate(j.Plan, r.Options, r.dir.Earlier...); left >= all || left <= 0 {
		t.Errorf("the remaining trials take about %v, all %v", left, all)
	}
	if live, err = measure(r, 0); err != nil {
		t.Fatal(err)
	}
	got, err := r.Finish(live, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Trials) != len(want.Trials) || got.Run.Seed != 7 || got.Run.Interrupted || got.Run.Finished.IsZero() || got.Run.ExitCode != want.Run.ExitCode {
		t.Fatalf("%d trials, %+v; want %d", len(got.Trials), got.Run, len(want.Trials))
	}
	for i, trial := range got.Trials {
		if trial.ID != want.Trials[i].ID || trial.Order != i {
			t.Errorf("trial %d is %s with order %d; want %s", i, trial.ID, trial.Order, want.Trials[i].ID)
		}
	}
	if strings.Contains(text(t, got), "Interrupted") {
		t.Error("a finished run is reported as interrupted")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(path, program, nil); !errors.Is(err, rundir.ErrFinished) {
		t.Errorf("a finished run is resumed: %v", err)
	}
	if found := Interrupted(filepath.Dir(path)); found != "" {
		t.Errorf("found %q, which is finished", found)
	}
}

func TestOnlyTheSameRunIsResumed(t *testing.T) {
	for want, change := range map[string]func(*Job, *report.Program){
		"link l is planned differently":                func(j *Job, _ *report.Program) { j.Plan.Links[0].Transport = "bridge" },
		"no longer has the functions":                  func(j *Job, _ *report.Program) { j.Plan.Functions = append(j.Plan.Functions, plan.Function{Name: "c"}) },
		"function b is planned differently":            func(j *Job, _ *report.Program) { j.Plan.Functions = j.Plan.Functions[:1] },
		`was begun with host "h", now "other"`:         func(j *Job, _ *report.Program) { j.Inventory.Host.Hostname = "other" },
		`begun with instrument draygen "1", now "2"`:   func(j *Job, _ *report.Program) { j.Inventory.Instruments[0].Version = "2" },
		`begun with runtime runc "1", now "2"`:         func(j *Job, _ *report.Program) { j.Inventory.Runtimes[0].Version = "2" },
		`begun with transport veth "1", now "2"`:       func(j *Job, _ *report.Program) { j.Inventory.Transports[0].Version = "2" },
		`was begun with build of dray "b", now "other`: func(_ *Job, by *report.Program) { by.Build = "other" },
	} {
		path := interrupt(t, job(t))
		j, by := job(t), program
		change(&j, &by)
		if _, err := Resume(path, by, func(string) (Job, error) { return j, nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if rundir.AtWork(path) {
			t.Errorf("%q: the directory stays locked", want)
		}
	}
}

// A link's engine is known once the chain is up.
func TestEnginesOfAResumedRun(t *testing.T) {
	was := []report.Link{{Name: "l", Engine: "vpp 1"}, {Name: "m"}}
	if err := sameEngines("run", was, was); err != nil {
		t.Error(err)
	}
	if err := sameEngines("run", was, []report.Link{{Name: "m"}, {Name: "l", Engine: "vpp 2"}}); err == nil || !strings.Contains(err.Error(), `engine of link l "vpp 1", now "vpp 2"`) {
		t.Errorf("%v", err)
	}
}

// The run does not bring up the chain of `dray verify`.
func TestRunOfAChainThatWasUpIsNotResumed(t *testing.T) {
	r := New(job(t), filepath.Join(t.TempDir(), "run"), verify.Options{Rounds: 1}, program)
	live := &node.Live{Chain: r.Chain, State: node.State{Plan: r.Plan}}
	if err := r.Begin(live); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(r.Path, program, nil); err == nil || !strings.Contains(err.Error(), "`dray verify c`") {
		t.Errorf("%v", err)
	}
}

// A chain in a cluster is measured by kubectl.
func TestRunInAClusterIsNotResumed(t *testing.T) {
	state := NewState("c", verify.Options{}, program)
	state.Cluster = &report.RunCluster{Namespace: "ran"}
	d, err := Create(filepath.Join(t.TempDir(), "run"), state, []byte("the chain"), map[string]any{report.PlanFile: job(t).Plan})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(d.Path, program, nil); err == nil || !strings.Contains(err.Error(), "`kubectl dray verify c -n ran --active`") {
		t.Errorf("%v", err)
	}
}

// TestARemovedDirectoryKeepsTheVerdict: somebody removes the directory of a run that has
// measured, and the run reports as if it were there, and says so.
func TestARemovedDirectoryKeepsTheVerdict(t *testing.T) {
	r := New(job(t), filepath.Join(t.TempDir(), "run"), verify.Options{Rounds: 3, Seed: 7}, program)
	live, err := measure(r, 0)
	testenv.Must(t, err)
	testenv.Must(t, os.RemoveAll(r.Path))
	var warned error
	r.Warn = func(err error) { warned = err }
	data, err := r.Finish(live, 0, false)
	testenv.Must(t, err)
	testenv.Must(t, r.Close())
	if len(data.Verdicts) == 0 || data.Run.ExitCode != data.ExitCode() || data.ExitCode() == 0 || warned == nil || !strings.Contains(warned.Error(), r.Path) {
		t.Errorf("%d verdicts, exit code %d, warning: %v", len(data.Verdicts), data.Run.ExitCode, warned)
	}
	again, err := report.Load(r.Path)
	testenv.Must(t, err)
	if text(t, again) != text(t, data) {
		t.Errorf("dray report shows\n%s\nand not\n%s", text(t, again), text(t, data))
	}
}

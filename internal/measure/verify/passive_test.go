// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/link/telemetry/telemetrytest"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// held is a plan whose only link an application holds, and its report: a sends to b.
func held() (*plan.Plan, live.Source) {
	p := &plan.Plan{Chain: "c", Links: []plan.Link{{
		Name: "ab", Transport: "shm",
		Ends:     []plan.End{{Function: "a", Port: "p0", Face: chain.FaceNative}, {Function: "b", Port: "p0", Face: chain.FaceNative}},
		Requires: chain.Requires{Latency: units.Duration(time.Millisecond)},
	}}}
	second := 0
	return p, func(context.Context) ([]live.Chain, error) {
		second++
		return []live.Chain{{Snapshot: telemetrytest.Snapshot(second, telemetrytest.Reported(uint64(second), 2000, 0)), Planned: p.Links}}, nil
	}
}

// Nothing is sent over a link that an application holds: its own traffic is recorded.
func TestOwnTrafficIsRecorded(t *testing.T) {
	p, source := held()
	in := Input{Plan: p, Live: source, Options: Options{Rounds: 2, Duration: 10 * time.Millisecond, Held: []string{"ab"}}, Env: func() record.Environment { return record.Environment{Kernel: "k"} }}
	trials, err := links(in)
	if err != nil || len(trials) != 4 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, trial := range trials {
		if !trial.Passive || trial.Quantity != record.QStream || trial.Transport != "shm" || trial.Error != "" || trial.Instrument.Name != "libdray" || trial.Env.Kernel != "k" {
			t.Errorf("%+v", trial)
		}
		if sent := trial.Delivery != nil; sent != (trial.From == "a.p0") {
			t.Errorf("%s: delivery %+v", trial.ID, trial.Delivery)
		}
	}
	if trials[0].Round != 0 || trials[2].Round != 1 || trials[0].OneWay.Coarse.Least.Total() != 1000 {
		t.Errorf("rounds %d and %d, %+v", trials[0].Round, trials[2].Round, trials[0].OneWay)
	}
	verdicts := verdict.Judge(verdict.OfRun(p.Links[0], trials), trials)
	if len(verdicts) != 1 || verdicts[0].Directions[1].Reason != "the application sent nothing" {
		t.Errorf("%+v", verdicts)
	}
}

// A broker that does not answer is a failed trial, and not silence.
func TestAnUnreadReportIsAnError(t *testing.T) {
	p, _ := held()
	gone := errors.New("the broker is gone")
	in := Input{Plan: p, Live: func(context.Context) ([]live.Chain, error) { return nil, gone }, Options: Options{Rounds: 1, Duration: 10 * time.Millisecond, Held: []string{"ab"}},
		Env: func() record.Environment { return record.Environment{} }}
	trials, err := links(in)
	if err != nil || len(trials) != 2 || trials[0].Error != gone.Error() || !trials[0].Passive {
		t.Errorf("%+v, %v", trials, err)
	}
}

func links(in Input) ([]record.Trial, error) {
	in.Sandboxes = map[string]*runtime.Sandbox{"a": {}, "b": {}}
	return Links(context.Background(), in)
}

func TestIntervalsSufficeForThePercentile(t *testing.T) {
	for want, o := range map[int]Options{
		24: {}, 12: {Profile: Quick}, 60: {Profile: Thorough}, 7: {Rounds: 7},
	} {
		p, _ := held()
		p.Links[0].Requires.Percentile = 90
		o.Held = []string{"ab"}
		if got := intervals(p, o); got != want {
			t.Errorf("%+v: %d intervals, want %d", o, got, want)
		}
	}
	p, _ := held()
	p.Links[0].Requires.Percentile = 99.9
	if got := intervals(p, Options{Held: []string{"ab"}}); got != 118 { // 30,000 of 256 a second
		t.Errorf("p99.9: %d intervals", got)
	}
	if took := Estimate(p, Options{Held: []string{"ab"}}); took < 118*time.Second || took > 140*time.Second {
		t.Errorf("p99.9 takes %v", took)
	}
}

// An undecided look is followed by three times as many intervals.
func TestOwnTrafficIsObservedAgain(t *testing.T) {
	p, source := held()
	p.Links[0].Requires.Percentile = 99.9
	in := Input{Plan: p, Live: source, Options: Options{Rounds: 3, Duration: 10 * time.Millisecond, Held: []string{"ab"}}, Env: func() record.Environment { return record.Environment{} }}
	trials, err := links(in)
	if err != nil {
		t.Fatal(err)
	}
	first := observation{links: p.Links, rounds: 3}
	again := first.undecided(trials)
	if len(again.links) != 1 || again.rounds != 9 || again.before != 3 || again.look != 1 {
		t.Errorf("again: %+v", again)
	}
	p.Links[0].Requires.Percentile = 90
	if again := first.undecided(trials); len(again.links) != 0 || again.before != 0 {
		t.Errorf("decided, but again: %+v", again)
	}
}

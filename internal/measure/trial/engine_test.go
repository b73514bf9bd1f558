// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

type memory struct {
	trials []record.Trial
	err    error
}

func (m *memory) Write(t record.Trial) error {
	m.trials = append(m.trials, t)
	return m.err
}

func env() record.Environment { return record.Environment{CPUs: []int{0, 1}, Governor: "performance"} }

func measured(context.Context, Round) (record.Trial, error) {
	return record.Trial{Quantity: record.QThroughput, Start: time.Unix(1, 0), Throughput: &record.Throughput{BitsPerSecond: 1}}, nil
}

func cells(n int) []Cell {
	var cs []Cell
	for i := range n {
		cs = append(cs, Cell{ID: fmt.Sprintf("c%d", i), Run: measured})
	}
	return cs
}

func TestEveryCellRunsOnceARound(t *testing.T) {
	cs := cells(4)
	cs[1].Rounds, cs[1].NoWarmup = 1, true
	sink := &memory{}
	e := &Engine{Seed: 7, Rounds: 3, Warmups: 1, Sink: sink, Env: env}
	trials, err := e.Run(context.Background(), cs)
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 3+4+3+3 || len(sink.trials) != len(trials) {
		t.Fatalf("%d trials, %d written", len(trials), len(sink.trials))
	}
	ids := map[string]bool{}
	for i, trial := range trials {
		ids[trial.ID] = true
		if trial.Order != i || trial.Seed != 7 || trial.Schema != record.Schema || trial.Env.Governor != "performance" || trial.Marks == nil {
			t.Errorf("trial %d: %+v", i, trial)
		}
		if trial.Warmup != (i < 3) {
			t.Errorf("trial %d: warm-up %v", i, trial.Warmup)
		}
	}
	for _, id := range []string{"c0-w0", "c0-r0", "c0-r2", "c1-r0", "c3-r2"} {
		if !ids[id] {
			t.Errorf("no trial %s among %v", id, ids)
		}
	}
	if len(ids) != len(trials) || ids["c1-r1"] || ids["c1-w0"] {
		t.Errorf("ids %v", ids)
	}
}

func order(e *Engine, cs []Cell) []string {
	var out []string
	for _, p := range e.schedule(cs) {
		out = append(out, p.id())
	}
	return out
}

// A run that goes on makes records that no earlier one has the id of.
func TestProlongedRunGoesOn(t *testing.T) {
	e := &Engine{Seed: 7, Rounds: 2, Env: env}
	first, err := e.Run(context.Background(), cells(2))
	if err != nil {
		t.Fatal(err)
	}
	e.Before = Before{Trials: len(first), Rounds: 2}
	second, err := e.Run(context.Background(), cells(2)[:1])
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for i, trial := range append(first, second...) {
		if trial.Order != i || ids[trial.ID] {
			t.Errorf("trial %d: order %d, id %s (seen before: %v)", i, trial.Order, trial.ID, ids[trial.ID])
		}
		ids[trial.ID] = true
	}
	if len(second) != 2 || second[1].Round != 3 {
		t.Errorf("the second run: %+v", second)
	}
}

func TestOrderComesFromTheSeed(t *testing.T) {
	cs := cells(6)
	first := order(&Engine{Seed: 1, Rounds: 8}, cs)
	if again := order(&Engine{Seed: 1, Rounds: 8}, cs); !slices.Equal(first, again) {
		t.Error("the same seed gave two orders")
	}
	if other := order(&Engine{Seed: 2, Rounds: 8}, cs); slices.Equal(first, other) {
		t.Error("two seeds gave one order")
	}
	// Rounds are shuffled one by one: all of a round before any of the next.
	same := 0
	for r := range 8 {
		round := first[6*r : 6*r+6]
		for _, id := range round {
			if !strings.HasSuffix(id, fmt.Sprintf("-r%d", r)) {
				t.Fatalf("%s in round %d", id, r)
			}
		}
		if round[0] == fmt.Sprintf("c0-r%d", r) {
			same++
		}
	}
	if same == 8 {
		t.Error("every round begins with the same cell")
	}
}

func TestFailureIsARecord(t *testing.T) {
	cs := cells(2)
	cs[0].Run = func(context.Context, Round) (record.Trial, error) {
		return record.Trial{Link: "l", Quantity: record.QLatency}, errors.New("no route")
	}
	trials, err := (&Engine{Rounds: 2, Env: env}).Run(context.Background(), cs)
	if err != nil || len(trials) != 4 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, trial := range trials {
		failed := strings.HasPrefix(trial.ID, "c0")
		if (trial.Error == "no route") != failed || trial.Start.IsZero() {
			t.Errorf("%+v", trial)
		}
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cs := cells(3)
	runs := 0
	for i := range cs {
		cs[i].Run = func(ctx context.Context, r Round) (record.Trial, error) {
			if runs++; runs == 2 {
				cancel()
				return record.Trial{}, ctx.Err()
			}
			return measured(ctx, r)
		}
	}
	sink := &memory{}
	trials, err := (&Engine{Rounds: 3, Sink: sink, Env: env}).Run(ctx, cs)
	if !errors.Is(err, context.Canceled) || len(trials) != 1 || len(sink.trials) != 1 || runs != 2 {
		t.Errorf("%v, %d trials, %d written, %d run", err, len(trials), len(sink.trials), runs)
	}
}

func TestFullDiskEndsTheRun(t *testing.T) {
	full := errors.New("no space left")
	if _, err := (&Engine{Rounds: 1, Sink: &memory{err: full}, Env: env}).Run(context.Background(), cells(2)); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

func TestLoadOfTheMachineIsRecorded(t *testing.T) {
	// Reads come in threes: before the pause, after it, and after the trial.
	reads := []host.CPUTimes{{Total: 0, Idle: 0}, {Total: 100, Idle: 50}, {Total: 200, Idle: 70, Stolen: 5}}
	e := &Engine{Rounds: 1, Env: env}
	e.cpuTimes = func() (host.CPUTimes, error) {
		next := reads[0]
		reads = reads[1:]
		return next, nil
	}
	trials, err := e.Run(context.Background(), cells(1))
	if err != nil {
		t.Fatal(err)
	}
	got := trials[0]
	if got.Env.BusyDuring < 0.79 || got.Env.BusyDuring > 0.81 || got.Env.Stolen < 0.049 || got.Env.Stolen > 0.051 {
		t.Errorf("busy %v, stolen %v; want 0.80 and 0.05", got.Env.BusyDuring, got.Env.Stolen)
	}
	if !slices.Equal(got.Marks, []string{record.MarkBusy, record.MarkStolen}) {
		t.Errorf("marks %q", got.Marks)
	}
}

func TestProgressCountsDown(t *testing.T) {
	cs := cells(2)
	cs[0].Expect, cs[1].Expect = time.Second, 2*time.Second
	var left []time.Duration
	e := &Engine{Rounds: 2, Env: env, Progress: func(p Progress) {
		left = append(left, p.Left)
		if p.Rounds != 2 || p.Cell.ID == "" {
			t.Errorf("%+v", p)
		}
	}}
	if _, err := e.Run(context.Background(), cs); err != nil {
		t.Fatal(err)
	}
	if left[0] != 6*time.Second+4*pause || !slices.IsSortedFunc(left, func(a, b time.Duration) int { return int(b - a) }) {
		t.Errorf("left %v", left)
	}
}

func TestPreflight(t *testing.T) {
	four := record.Environment{CPUs: []int{0, 1, 2, 3}, Governor: "performance"}
	change := func(f func(*record.Environment)) record.Environment {
		e := four
		f(&e)
		return e
	}
	pinned := func(a, b []int) record.Environment {
		return change(func(e *record.Environment) { e.Pinning = map[string][]int{"a": a, "b": b} })
	}
	for name, c := range map[string]struct {
		env    record.Environment
		demand Demand
		busy   float64
		want   []string
	}{
		"calm":                     {four, Demand{"a": 2, "b": 2}, 0.19, []string{}},
		"a thread too many":        {four, Demand{"a": 3, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"pinned apart":             {pinned([]int{0, 1}, []int{2, 3}), Demand{"a": 2, "b": 2}, 0, []string{}},
		"pinned to one":            {pinned([]int{0}, []int{1, 2, 3}), Demand{"a": 2, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"pinned together":          {pinned([]int{0, 1}, []int{0, 1}), Demand{"a": 2, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"pinned in a pinned set":   {pinned([]int{0}, []int{0, 1}), Demand{"a": 1, "b": 2}, 0, []string{record.MarkOversubscribed}},
		"one pinned, the rest not": {pinned([]int{0}, nil), Demand{"a": 1, "b": 3}, 0, []string{}},
		"governor":                 {change(func(e *record.Environment) { e.Governor = "powersave" }), nil, 0, []string{record.MarkGovernor}},
		"no cpufreq":               {change(func(e *record.Environment) { e.Governor = "none" }), nil, 0, []string{}},
		"busy":                     {four, nil, 0.21, []string{record.MarkBusy}},
		"stolen":                   {change(func(e *record.Environment) { e.Stolen = 0.021 }), nil, 0, []string{record.MarkStolen}},
		"TCG":                      {change(func(e *record.Environment) { e.Virtual = inventory.VirtualTCG }), nil, 0, []string{record.MarkEmulated}},
		"KVM":                      {change(func(e *record.Environment) { e.Virtual = "QEMU Standard PC" }), nil, 0, []string{}},
	} {
		if got := Preflight(c.env, c.demand, c.busy); !slices.Equal(got, c.want) {
			t.Errorf("%s: marks %q; want %q", name, got, c.want)
		}
	}
}

func TestDemandAddsUp(t *testing.T) {
	if got := (Demand{"a": 1, "b": 1}).With(Demand{"b": 1, "c": 2}); len(got) != 3 || got["a"] != 1 || got["b"] != 2 || got["c"] != 2 {
		t.Errorf("%v", got)
	}
}

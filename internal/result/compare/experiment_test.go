// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

// values adds trials of an experiment's cell.
func (f *fixture) values(trials int, quantity record.Quantity, v map[string]float64) {
	for range trials {
		f.add(func(t *record.Trial) {
			t.Quantity, t.Experiment = quantity, &record.Experiment{Cell: string(quantity), Values: maps.Clone(v)}
			if quantity == record.QWakeup {
				hdr := record.NewHDR()
				for i := range int64(1000) {
					_ = hdr.RecordValue(1000 + i)
				}
				t.Latency = &record.Latency{Histogram: record.FromHDR(hdr)}
			}
		})
	}
}

// Every figure of an experiment's rows is compared.
func TestFiguresOfExperimentsAreCompared(t *testing.T) {
	made := func(id string, start, wakeup, held float64) *Run {
		f := newFixture(id, "veth", 3)
		f.values(3, "start", map[string]float64{"start_time": start, "disk": 400})
		f.values(3, record.QWakeup, map[string]float64{"wakeup_max": wakeup})
		f.values(3, "checks", map[string]float64{"hides_cpus": 1, "limits_memory": held, "syscalls_dropped": 300})
		return f.run(t)
	}
	c, err := Compare(made("a", 1.5, 30, 1), made("b", 21, 30, 0))
	testenv.Must(t, err)
	got := map[string]string{}
	for _, r := range c.Rows {
		got[r.Metric] = string(r.Outcome)
		if strings.HasPrefix(r.Metric, "round trip, p") {
			t.Errorf("wake-ups are compared as %s", r.Metric)
		}
		if r.Metric == "start" && (r.A.Value == nil || math.Abs(*r.A.Value-1.5e9) > 1) {
			t.Errorf("the start of %+v, want 1.5 s", r.A)
		}
	}
	want := map[string]string{
		"start": string(Worse), "disk": string(Indistinguishable), "wake-up, maximum": string(Indistinguishable),
		"system calls dropped": string(Indistinguishable), "checks that hold": string(Worse),
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var b strings.Builder
	if err := WriteBenchmarks(&b, made("a", 1.5, 30, 1)); err != nil || !strings.Contains(b.String(), " 1.5 start-sec 4e+08 disk-B") || !strings.Contains(b.String(), " 300 system-calls-dropped 1 checks-that-hold-ratio") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// A cell's share of the generator's ceiling is its error budget, not a separate figure.
func TestCeilingsOfCellsAreNotCompared(t *testing.T) {
	made := func(id string) *Run {
		f := newFixture(id, "veth", 3)
		f.frames(3, "veth", "max", 1e6, 2e6)
		for i := range f.trials {
			if b := f.trials[i].Bench; b != nil {
				b.Ceiling = &record.Ceiling{Send: 9e6, Receive: 8e6}
			}
		}
		return f.run(t)
	}
	got, err := Compare(made("a"), made("b"))
	testenv.Must(t, err)
	rates := 0
	for _, r := range got.Rows {
		if strings.HasPrefix(r.Metric, "generator alone") {
			t.Errorf("%s is compared: %s", r.Metric, r.Outcome)
		}
		if r.Metric == "packet rate" {
			rates++
		}
	}
	if rates != 1 {
		t.Errorf("%d rows of rates, want 1", rates)
	}
}

// Rates searched for with different goals, and maxima of trials of different lengths,
// are not comparable.
func TestUnlikeFiguresAreNotCompared(t *testing.T) {
	made := func(id, goal string, length time.Duration) *Run {
		f := newFixture(id, "veth", 3)
		f.values(3, record.QWakeup, map[string]float64{"wakeup_max": 30, "disk": 1})
		f.frames(3, "veth", "pdr", 1e6, 2e6)
		for i := range f.trials {
			t := &f.trials[i]
			t.Duration = length
			if t.Bench != nil {
				t.Bench.Search = &record.Search{Goal: goal, Throughput: 1e6}
			}
		}
		return f.run(t)
	}
	for _, c := range []struct {
		goal        string
		length      time.Duration
		rate, worst Outcome
	}{
		{"pdr", time.Second, Indistinguishable, Indistinguishable},
		{"pdr 2 %", time.Second, NotCompared, Indistinguishable},
		{"pdr", 10 * time.Second, Indistinguishable, NotCompared},
	} {
		got, err := Compare(made("a", "pdr", time.Second), made("b", c.goal, c.length))
		testenv.Must(t, err)
		for _, r := range got.Rows {
			want, some := map[string]Outcome{"packet rate": c.rate, "wake-up, maximum": c.worst, "disk": Indistinguishable}[r.Metric]
			if some && (r.Outcome != want || (want == NotCompared) != (r.Reason != "")) {
				t.Errorf("%s by %q in %v: %s (%s), want %s", r.Metric, c.goal, c.length, r.Outcome, r.Reason, want)
			}
		}
	}
}

// A new experiment figure needs a metric, or an existing one that covers it.
func TestEveryFigureOfExperimentsIsKnown(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Enum []string }
		} `json:"$defs"`
	}
	testenv.Must(t, json.Unmarshal(experiment.Schema(), &schema))
	figures := schema.Defs["row"].Properties["figure"].Enum
	if len(figures) < 20 {
		t.Fatalf("only %d figures", len(figures))
	}
	for _, f := range figures {
		if passFail := experiment.Figure(f).PassFail(); otherFigures[f] == passFail {
			t.Errorf("%s: a check %v, a figure of its own %v", f, passFail, otherFigures[f])
		}
	}
	for f := range otherFigures {
		if !slices.Contains(figures, f) {
			t.Errorf("there is no figure %s", f)
		}
	}
}

// A run's machine is its host, even if lab guests measured first.
func TestMachineIsNotTheLabs(t *testing.T) {
	f := newFixture("a", "veth", 3)
	f.throughput(1, 1e9)
	f.trials[0].Marks, f.trials[0].Env.Kernel = []string{record.MarkLab}, "6.1"
	f.kernel = "6.18"
	f.throughput(1, 1e9)
	f.trials[1].Start = f.trials[0].Start.Add(time.Minute)
	if r := f.run(t); r.env.Kernel != "6.18" {
		t.Errorf("the machine has Linux %s", r.env.Kernel)
	}
}

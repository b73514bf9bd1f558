// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/record"
	"github.com/drayage/dray/internal/search"
)

func TestUnderLoad(t *testing.T) {
	p, err := UnderLoad(1_000_001, 1000, time.Second, 5)
	if err != nil {
		t.Fatal(err)
	}
	want := []Point{
		{"0 % of PDR", 1000, 0}, {"10 % of PDR", 100_000, 0.1},
		{"50 % of PDR", 500_001, 0.5}, {"90 % of PDR", 900_001, 0.9},
	}
	if diff := cmp.Diff(want, p.Points); diff != "" {
		t.Error(diff)
	}
	if _, err := UnderLoad(5000, 1000, time.Second, 5); err == nil || !strings.Contains(err.Error(), "idle") {
		t.Errorf("a probe above 10 %% of PDR: %v", err)
	}
	if _, err := UnderLoad(1e6, 1000, time.Second, 0); err == nil {
		t.Error("a plan without rounds was made")
	}
	if _, err := UnderLoad(1e6, 1, time.Millisecond, 1); err == nil || !strings.Contains(err.Error(), "not one packet") {
		t.Errorf("a trial too short for its probe: %v", err)
	}
}

func loads(p Plan) (out []uint64) {
	for _, pt := range p.Points {
		out = append(out, pt.Load)
	}
	return out
}

func TestSweep(t *testing.T) {
	for _, c := range []struct {
		from, to uint64
		points   int
		spacing  Spacing
		want     []uint64
	}{
		{1_000_000, 13_000_000, 4, Linear, []uint64{1_000_000, 5_000_000, 9_000_000, 13_000_000}},
		{1000, 1_000_000, 4, Logarithmic, []uint64{1000, 10_000, 100_000, 1_000_000}},
		{1, 4, 4, Logarithmic, []uint64{1, 2, 3, 4}},
	} {
		p, err := Sweep(c.from, c.to, c.points, c.spacing, time.Second, 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, loads(p)); diff != "" {
			t.Error(diff)
		}
		if last := p.Points[len(p.Points)-1]; last.Share != 1 {
			t.Errorf("the highest load is %g of itself", last.Share)
		}
	}
	for name, err := range map[string]error{
		"descending":   second(Sweep(10, 5, 2, Linear, time.Second, 1)),
		"one load":     second(Sweep(1, 5, 1, Linear, time.Second, 1)),
		"too many":     second(Sweep(1, 5, 6, Linear, time.Second, 1)),
		"from nothing": second(Sweep(0, 5, 2, Linear, time.Second, 1)),
		"no spacing":   second(Sweep(1, 5, 2, "even", time.Second, 1)),
		"no length":    second(Sweep(1, 5, 2, Linear, 0, 1)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ Plan, err error) error { return err }

// The engine runs a plan's points interleaved, each as often as the plan says.
func TestPlanRuns(t *testing.T) {
	p, err := Sweep(1000, 3000, 3, Linear, time.Millisecond, 4)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[uint64]int{}
	cells := p.Cells("sweep", Demand{"a": 1}, func(_ context.Context, pt Point, r Round) (record.Trial, error) {
		ran[pt.Load]++
		return record.Trial{}, nil
	})
	idle := func() (host.CPUTimes, error) { return host.CPUTimes{}, nil }
	e := Engine{Seed: 1, Rounds: 1, Env: func() record.Environment { return record.Environment{CPUs: []int{0, 1}} }, cpuTimes: idle}
	trials, err := e.Run(context.Background(), cells)
	if err != nil || len(trials) != 12 {
		t.Fatalf("%d trials, %v; want 12", len(trials), err)
	}
	if diff := cmp.Diff(map[uint64]int{1000: 4, 2000: 4, 3000: 4}, ran); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(trials[0].ID, "sweep-") {
		t.Errorf("trial %s", trials[0].ID)
	}
}

func TestOutcome(t *testing.T) {
	stream := record.Trial{
		Delivery: &record.Delivery{Sent: 990, Received: 980, Lost: 10, ReceiverDrops: 4},
		OneWay: &record.OneWay{Unsent: 10, Lateness: record.Histogram{Bits: 6, Counts: []record.BucketCount{
			{Value: 20, Count: 980}, {Value: 50, Count: 5}, {Value: 63, Count: 5}}}},
	}
	o, err := Outcome(stream)
	want := search.Outcome{Sent: 990, Received: 980, Unsent: 10, ReceiverDrops: 4, Lateness: 50}
	if err != nil || o != want {
		t.Errorf("%+v, %v; want %+v", o, err, want)
	}
	if o.LossRatio() < 0.0199 || o.LossRatio() > 0.0201 {
		t.Errorf("loss ratio %g, want 20 of 1000", o.LossRatio())
	}
	var rejected *search.RejectedError
	if _, err := Outcome(record.Trial{Error: "the sink died"}); !errors.As(err, &rejected) || rejected.Reason != "the sink died" {
		t.Errorf("a failed trial: %v, want it rejected", err)
	}
	_, err = Outcome(record.Trial{ID: "x", Instrument: record.Instrument{Name: "iperf"}, Delivery: stream.Delivery})
	if err == nil || errors.As(err, &rejected) || !strings.Contains(err.Error(), "iperf") {
		t.Errorf("an instrument that knows nothing unsent: %v, want it refused", err)
	}
	stream.OneWay = &record.OneWay{Lateness: record.Histogram{Bits: 99}}
	if _, err := Outcome(stream); !errors.As(err, &rejected) {
		t.Errorf("a malformed histogram: %v, want it rejected", err)
	}
}

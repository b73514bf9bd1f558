// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/search"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

// ramp is a sample each 20 ms: the chain uses one CPU, then two; of two CPUs.
func ramp() samples {
	var s samples
	cpu := time.Duration(0)
	for i := range 11 {
		at := time.Duration(i) * 20 * time.Millisecond
		if i > 0 {
			use := 20 * time.Millisecond
			if i > 5 {
				use *= 2
			}
			cpu += use
		}
		s = append(s, sample{host.Usage{At: time.Second + at, CPU: cpu, Memory: uint64(i)}, host.CPUTimes{Total: uint64(100 + 4*i), Idle: uint64(2 * i)}, cpu.Seconds() * 30})
	}
	return s
}

func TestCostBetweenSamples(t *testing.T) {
	for _, c := range []struct {
		from, to time.Duration
		cores    float64
	}{
		{0, 100 * time.Millisecond, 1},
		{100 * time.Millisecond, 200 * time.Millisecond, 2},
		{50 * time.Millisecond, 150 * time.Millisecond, 1.5},
		{95 * time.Millisecond, 105 * time.Millisecond, 1.5}, // between two samples
	} {
		got := ramp().cost(time.Second+c.from, time.Second+c.to)
		if math.Abs(got.Cores-c.cores) > 0.01 || math.Abs(got.Machine-0.5) > 0.01 || math.Abs(got.Power-30*c.cores) > 0.3 || got.Memory != 10 {
			t.Errorf("%v to %v: %+v, want %v cores", c.from, c.to, got, c.cores)
		}
	}
	if got := (samples{}).cost(1, 2); got.Cores != 0 {
		t.Errorf("no samples give %+v", got)
	}
}

func TestSearchedIsTheTrialAtTheRateFound(t *testing.T) {
	goal := search.PDR(time.Second, 3*time.Second)
	made := map[uint64]record.Trial{
		900: {ID: "wrong", Bench: &record.Bench{}},
		800: {ID: "right", Bench: &record.Bench{Load: "pdr"}},
	}
	found := search.Result{Goals: []search.GoalResult{{Goal: goal, Lower: 800, Upper: 810, Throughput: 799, Reason: search.ReasonBudget}}}
	got, err := searched(found, made, 9)
	testenv.Must(t, err)
	if s := got.Bench.Search; got.ID != "right" || s.Lower != 800 || s.Throughput != 799 || s.Trials != 9 || s.Irregular == "" {
		t.Errorf("%s: %+v", got.ID, s)
	}
	found.Goals[0].Lower = 0
	if _, err := searched(found, made, 9); !errors.Is(err, errNoRate) {
		t.Error("a search without a lower bound has a result")
	}
}

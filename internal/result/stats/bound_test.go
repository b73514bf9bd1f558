// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/drayage/dray/internal/result/record"
)

func TestQuantileBoundsHold(t *testing.T) {
	// Exponential delays with mean 1 ms: p99 is 4.605 ms.
	const tail = 0.01
	truth := -math.Log(tail) * 1e6
	for _, trials := range []int{3, 10} {
		const runs = 300
		var upper, lower float64
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, uint64(trials)))
			parts := make([]*Dist, trials)
			for i := range parts {
				values := make([]int64, 1000)
				for j := range values {
					values[j] = int64(rng.ExpFloat64() * 1e6)
				}
				parts[i] = dist(t, histogramOf(t, 2, values...), 0)
			}
			up, err := UpperQuantile(Confidence, parts, tail)
			if err != nil {
				t.Fatal(err)
			}
			low, err := LowerQuantile(Confidence, parts, tail)
			if err != nil {
				t.Fatal(err)
			}
			upper += one(truth <= up)
			lower += one(low <= truth)
			if low > 0 && low > up {
				t.Fatalf("bounds %g…%g are crossed", low, up)
			}
		}
		if upper/runs < 0.93 || lower/runs < 0.93 {
			t.Errorf("%d trials: bounds of p99 hold in %.1f %% (upper) and %.1f %% (lower), want at least 93 %%", trials, 100*upper/runs, 100*lower/runs)
		}
	}
}

func TestQuantileBoundsWithLosses(t *testing.T) {
	some := func(lost uint64) []*Dist {
		h := histogramOf(t, 3, ramp(1000)...)
		return []*Dist{dist(t, h, lost), dist(t, h, lost), dist(t, h, lost)}
	}
	if v, err := UpperQuantile(Confidence, some(50), 0.01); err != nil || !math.IsInf(v, 1) {
		t.Errorf("5 %% lost: p99 is bounded by %g, %v; want no bound", v, err)
	}
	if v, err := LowerQuantile(Confidence, some(50), 0.01); err != nil || !math.IsInf(v, 1) {
		t.Errorf("5 %% lost: p99 is at least %g, %v; want +Inf", v, err)
	}
	if v, err := UpperQuantile(Confidence, some(0), 0.01); err != nil || v < 990e3 || v > 1001e3 {
		t.Errorf("none lost: p99 is at most %g, %v; want 0.99–1.0 ms", v, err)
	}
	empty := dist(t, record.Histogram{Lowest: 1, Highest: 1000, Digits: 3}, 7)
	if v, err := LowerQuantile(Confidence, []*Dist{empty, empty, empty}, 0.02); err != nil || !math.IsInf(v, 1) {
		t.Errorf("everything lost: at least %g, %v; want +Inf", v, err)
	}
}

func TestQuantileBoundsTooFew(t *testing.T) {
	var few *TooFewError
	d := dist(t, histogramOf(t, 3, ramp(100)...), 0)
	if _, err := UpperQuantile(Confidence, []*Dist{d}, 0.01); !errors.As(err, &few) {
		t.Errorf("one trial: %v, want a *TooFewError", err)
	}
	if v, err := UpperQuantile(Confidence, []*Dist{d, d}, 1e-4); err != nil || !math.IsInf(v, 1) {
		t.Errorf("p99.99 of 200 samples is bounded by %g, %v; want no bound", v, err)
	}
	if v, err := LowerQuantile(Confidence, []*Dist{d, d}, 1); err != nil || v != 0 {
		t.Errorf("a tail of 1: at least %g, %v; want nothing proven", v, err)
	}
}

func TestSamplesToProve(t *testing.T) {
	p, err := Clustered([]Cluster{{0, 100}, {1, 100}, {0, 100}})
	if err != nil {
		t.Fatal(err)
	}
	n, ok := p.SamplesToProve(0.01)
	if !ok || n < 1000 || n > 20_000 {
		t.Errorf("1 in 300 against 1 %%: %g samples, %v", n, ok)
	}
	if _, ok := p.SamplesToProve(0.001); ok {
		t.Error("1 in 300 can never prove 0.1 %")
	}
}

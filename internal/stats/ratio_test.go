// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRatioKnown(t *testing.T) {
	r, err := Ratio([]Pair{{2, 1}, {8, 4}, {6, 3}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ratio", r.Ratio, 2, 1e-12)
	near(t, "low", r.CI.Low, 2, 1e-9)
	if r.Indistinguishable() || r.Method != "t interval on log ratios" {
		t.Errorf("%+v: a constant ratio of 2 is distinguishable, by t", r)
	}
}

func TestRatioRefuses(t *testing.T) {
	if _, err := Ratio([]Pair{{1, 0}, {1, 1}}, 1); err == nil {
		t.Error("a ratio to zero was given")
	}
	var few *TooFewError
	if _, err := Ratio([]Pair{{1, 1}}, 1); !errors.As(err, &few) {
		t.Errorf("one pair: %v, want a *TooFewError", err)
	}
}

// A/A runs: equal configurations are called indistinguishable in about 95 %.
func TestRatioCoverage(t *testing.T) {
	for _, c := range []struct {
		pairs  int
		method string
		low    float64
	}{
		{5, "t interval on log ratios", 0.93},
		{10, "t interval on log ratios", 0.93},
		{30, "bootstrap", 0.92}, // a percentile bootstrap of 30 is known to be a little narrow
	} {
		// The bootstrap draws 10,000 resamples an experiment: fewer experiments.
		runs := simulations
		if c.pairs >= BootstrapFrom {
			runs = 400
		}
		same := 0.0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, uint64(c.pairs)))
			pairs := make([]Pair, c.pairs)
			for i := range pairs {
				pairs[i] = Pair{math.Exp(0.1 * rng.NormFloat64()), math.Exp(0.1 * rng.NormFloat64())}
			}
			r, err := Ratio(pairs, seed)
			if err != nil || r.Method != c.method {
				t.Fatalf("%d pairs: method %q, %v; want %q", c.pairs, r.Method, err, c.method)
			}
			same += one(r.Indistinguishable())
		}
		if share := same / float64(runs); share < c.low || share > 0.975 {
			t.Errorf("%d pairs: indistinguishable in %.1f %%, want %.0f–97.5 %%", c.pairs, 100*share, 100*c.low)
		}
	}
}

func TestBootstrapIsFixedBySeed(t *testing.T) {
	pairs := make([]Pair, 25)
	for i := range pairs {
		pairs[i] = Pair{1 + float64(i%5)/10, 1}
	}
	a, err := Ratio(pairs, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Ratio(pairs, 7)
	if err != nil || a != b {
		t.Errorf("the same seed gives %+v and %+v, %v", a, b, err)
	}
}

func TestOutliers(t *testing.T) {
	got := Outliers([]float64{10, 11, 9, 10, 30, 10.5})
	want := []bool{false, false, false, false, true, false}
	if !slices.Equal(got, want) {
		t.Errorf("Outliers = %v, want %v", got, want)
	}
	if got := Outliers([]float64{1, 100}); slices.Contains(got, true) {
		t.Errorf("two values: %v; neither can be the outlier", got)
	}
	if got := Outliers([]float64{5, 5, 5, 6}); !slices.Equal(got, []bool{false, false, false, true}) {
		t.Errorf("MAD 0: %v, want the different value flagged", got)
	}
}

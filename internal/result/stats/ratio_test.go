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

// A/A runs: two equal configurations are called different in about 5 %.
func TestFalseDifferences(t *testing.T) {
	for _, n := range []int{5, 10, 30} {
		var paired, unpaired float64
		for seed := range uint64(simulations) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			pairs := make([]Pair, n)
			a, b := make([]float64, n), make([]float64, n)
			for i := range pairs {
				shared := math.Exp(rng.NormFloat64()) // conditions of the round
				a[i], b[i] = math.Exp(0.1*rng.NormFloat64()), math.Exp(0.1*rng.NormFloat64())
				pairs[i] = Pair{shared * a[i], shared * b[i]}
			}
			r, err := ratio(pairs, seed, 400)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]string{false: "t interval on log ratios", true: "bootstrap"}[n >= BootstrapFrom]; r.Method != want {
				t.Fatalf("%d pairs: method %q, want %q", n, r.Method, want)
			}
			paired += one(!r.Indistinguishable())
			u, p, err := UnpairedRatio(a, b)
			if err != nil {
				t.Fatal(err)
			}
			if u.Indistinguishable() != (p >= 0.05) {
				t.Fatalf("%d values, seed %d: p = %g with the interval %v", n, seed, p, u.CI)
			}
			unpaired += one(!u.Indistinguishable())
		}
		for what, n5 := range map[string]float64{"pairs": paired, "two runs": unpaired} {
			if share := n5 / simulations; share < 0.03 || share > 0.07 {
				t.Errorf("%d %s: %.1f %% false differences, want 3–7 %%", n, what, 100*share)
			}
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

// TestRatioAgainstIsTheIntervalsDual: at the ends of a ratio's interval, one p-value is
// half of what the interval leaves out, for both of its methods.
func TestRatioAgainstIsTheIntervalsDual(t *testing.T) {
	for _, n := range []int{5, BootstrapFrom, 60} {
		rng := rand.New(rand.NewPCG(7, uint64(n)))
		pairs := make([]Pair, n)
		for i := range pairs {
			pairs[i] = Pair{2 * math.Exp(0.2*rng.NormFloat64()), 1}
		}
		r, err := NewRatioTest(pairs, 3)
		if err != nil {
			t.Fatal(err)
		}
		below, _ := r.Against(r.CI.High)
		_, above := r.Against(r.CI.Low)
		near(t, "below the upper end", below, 0.025, 0.001)
		near(t, "above the lower end", above, 0.025, 0.001)
		if below, above := r.Against(100); below > 0.003 || above < 0.99 {
			t.Errorf("%d pairs: p %g and %g for a value far above", n, below, above)
		}
		if below, above := r.Against(0.01); above > 0.003 || below < 0.99 {
			t.Errorf("%d pairs: p %g and %g for a value far below", n, below, above)
		}
	}
}

// TestRatioAgainstOfEqualPairs: without any spread, Student's t has no value.
func TestRatioAgainstOfEqualPairs(t *testing.T) {
	r, err := NewRatioTest([]Pair{{2, 1}, {8, 4}, {6, 3}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[float64]float64{3: 0, 1: 1, 2: 0.5} {
		if below, above := r.Against(at); below != want || above != 1-want {
			t.Errorf("against %g: %g and %g, want %g below", at, below, above, want)
		}
	}
}

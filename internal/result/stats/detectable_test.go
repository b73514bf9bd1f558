// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// aaPairs are pairs whose log ratio has standard deviation sd and mean shift.
func aaPairs(rng *rand.Rand, n int, sd, shift float64) []Pair {
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i] = Pair{math.Exp(sd*rng.NormFloat64() + shift), 1}
	}
	return pairs
}

// The quantiles of Student's t are scipy's: t.ppf(0.975, 9) and t.ppf(0.8, 9).
func TestSmallestDetectableKnown(t *testing.T) {
	const s = 0.05
	aa := []Pair{{math.Exp(s), 1}, {math.Exp(-s), 1}} // standard deviation s·√2
	d, err := SmallestDetectable(aa, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Exp((2.262157162798205 + 0.8834038596855346) * s * math.Sqrt2 / math.Sqrt(10))
	near(t, "detectable ratio", d.Ratio, want, 1e-9)
	near(t, "log ratio's sd", d.SD, s*math.Sqrt2, 1e-12)
	if !d.AA.Indistinguishable() {
		t.Error("the A/A pairs are called different")
	}
}

// About four of five comparisons detect a difference of that size. If there is none,
// about one in twenty reports one.
func TestSmallestDetectableHasItsPower(t *testing.T) {
	for _, n := range []int{5, 10, 30} {
		var found, wrong float64
		for seed := range uint64(simulations) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			d, err := SmallestDetectable(aaPairs(rng, 19, 0.05, 0), n, seed)
			if err != nil {
				t.Fatal(err)
			}
			truth := (tQuantile(0.975, n-1) + tQuantile(0.8, n-1)) * 0.05 / math.Sqrt(float64(n))
			if math.Abs(math.Log(d.Ratio)/truth-1) > 0.75 {
				t.Fatalf("seed %d: detectable %g, of true noise %g", seed, math.Log(d.Ratio), truth)
			}
			e, err := Mean(logRatios(aaPairs(rng, n, 0.05, truth)))
			if err != nil {
				t.Fatal(err)
			}
			found += one(e.CI.Low > 0)
			e, err = Mean(logRatios(aaPairs(rng, n, 0.05, 0)))
			if err != nil {
				t.Fatal(err)
			}
			wrong += one(e.CI.Low > 0 || e.CI.High < 0)
		}
		if share := found / simulations; share < 0.75 || share > 0.85 {
			t.Errorf("%d pairs: the difference is found in %.1f %%, want about 80 %%", n, 100*share)
		}
		if share := wrong / simulations; share < 0.03 || share > 0.07 {
			t.Errorf("%d pairs: a false difference in %.1f %%, want about 5 %%", n, 100*share)
		}
	}
}

func TestDetectableTooFew(t *testing.T) {
	var few *TooFewError
	if _, err := SmallestDetectable([]Pair{{1, 1}}, 10, 1); !errors.As(err, &few) {
		t.Errorf("one A/A pair: %v, want a *TooFewError", err)
	}
	if _, err := SmallestDetectable([]Pair{{1, 1}, {1, 2}}, 1, 1); !errors.As(err, &few) {
		t.Errorf("a comparison of one pair: %v, want a *TooFewError", err)
	}
	if _, err := RunNoise([]float64{1}); !errors.As(err, &few) {
		t.Errorf("one run: %v, want a *TooFewError", err)
	}
}

// With two runs that differ by 1 the noise is t₀.₉₇₅ with one degree of freedom,
// tan(0.475 π) = 12.706, times 1.
func TestRunNoiseKnown(t *testing.T) {
	got, err := RunNoise([]float64{3, 4})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "noise of two runs", got, math.Tan(0.475*math.Pi), 1e-6)
}

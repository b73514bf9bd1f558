// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.Abs(got-want) > tol || math.IsNaN(got) {
		t.Errorf("%s = %.10g, want %.10g ± %g", what, got, want, tol)
	}
}

// The quantiles of t with four degrees of freedom are from printed tables.
func TestMeanKnown(t *testing.T) {
	e, err := Mean([]float64{9.8, 10.2, 10.4, 9.9, 10.1})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", e.Mean, 10.08, 1e-12)
	near(t, "sd", e.SD, 0.2387467277, 1e-9)
	near(t, "two-sided low", e.CI.Low, 10.08-2.7764451052*0.1067707825, 1e-8)
	near(t, "two-sided high", e.CI.High, 10.08+2.7764451052*0.1067707825, 1e-8)
	near(t, "lower bound", e.Lower, 10.08-2.1318467863*0.1067707825, 1e-8)
	near(t, "upper bound", e.Upper, 10.08+2.1318467863*0.1067707825, 1e-8)
}

func TestLowerMean(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{1, math.E, math.E * math.E}, math.Exp(1 - 2.9199855804/math.Sqrt(3))},
		{[]float64{-1, 0, 1}, -2.9199855804 / math.Sqrt(3)},
		{[]float64{5, 5, 5}, 5},
	} {
		got, err := LowerMean(Confidence, c.values)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "lower bound", got, c.want, 1e-8)
	}
	var few *TooFewError
	if _, err := LowerMean(Confidence, []float64{1}); !errors.As(err, &few) {
		t.Errorf("one value: error %v, want a *TooFewError", err)
	}
}

func TestMeanTooFew(t *testing.T) {
	for _, values := range [][]float64{nil, {1}} {
		var few *TooFewError
		if _, err := Mean(values); !errors.As(err, &few) {
			t.Errorf("Mean(%v): error %v, want a *TooFewError", values, err)
		}
	}
}

func TestMeanOfEqualValuesHasNoWidth(t *testing.T) {
	e, err := Mean([]float64{0, 0, 0})
	if err != nil || e.Lower != 0 || e.Upper != 0 {
		t.Errorf("Mean of zeros = %+v, %v; want bounds of 0", e, err)
	}
}

// simulations is the number of simulated experiments. At a true coverage of 95 % the
// observed share has a standard error of 0.5 %.
const simulations = 2000

func TestMeanCoverage(t *testing.T) {
	draws := map[string]struct {
		mean     float64
		draw     func(*rand.Rand) float64
		low, top float64 // of the coverage
	}{
		"normal": {10, func(r *rand.Rand) float64 { return 10 + r.NormFloat64() }, 0.93, 0.97},
		// Student's t is not exact on skewed values: with few trials the upper bound of
		// a lognormal mean holds less often than stated.
		"lognormal σ=0.3": {math.Exp(0.045), func(r *rand.Rand) float64 { return math.Exp(0.3 * r.NormFloat64()) }, 0.90, 0.99},
	}
	for name, d := range draws {
		for _, n := range []int{5, 10, 30} {
			var two, lower, upper float64
			for seed := range uint64(simulations) {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				values := make([]float64, n)
				for i := range values {
					values[i] = d.draw(rng)
				}
				e, err := Mean(values)
				if err != nil {
					t.Fatal(err)
				}
				two += one(e.CI.Low <= d.mean && d.mean <= e.CI.High)
				lower += one(e.Lower <= d.mean)
				upper += one(d.mean <= e.Upper)
			}
			for what, hits := range map[string]float64{"interval": two, "lower bound": lower, "upper bound": upper} {
				if share := hits / simulations; share < d.low || share > d.top {
					t.Errorf("%s, n=%d: the %s covers in %.1f %%, want %.0f–%.0f %%", name, n, what, 100*share, 100*d.low, 100*d.top)
				}
			}
		}
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

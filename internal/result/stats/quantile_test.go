// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// The extremes of five values enclose the median with 1 − 2⁻⁴, of six with 1 − 2⁻⁵.
func TestMedianOfFew(t *testing.T) {
	for n, level := range map[int]float64{1: 0, 2: 0.5, 5: 1 - 1.0/16, 6: 1 - 1.0/32} {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(n - i)
		}
		e, err := Median(values)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "level", e.Level, level, 1e-9)
		near(t, "median", e.Value, float64(n+1)/2, 1e-12)
		if want := (Interval{1, float64(n)}); e.CI != want {
			t.Errorf("%d values: interval %v, want %v", n, e.CI, want)
		}
	}
	var few *TooFewError
	if _, err := Median(nil); !errors.As(err, &few) {
		t.Errorf("no value: %v, want a *TooFewError", err)
	}
}

// The ranks 8 and 18 of 25, and 40 and 61 of 100, are from the usual sign test tables.
func TestMedianRanks(t *testing.T) {
	for n, want := range map[int]Interval{25: {8, 18}, 100: {40, 61}} {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i + 1)
		}
		e, err := Median(values)
		if err != nil {
			t.Fatal(err)
		}
		if e.CI != want {
			t.Errorf("%d values: ranks %v, want %v", n, e.CI, want)
		}
	}
}

func TestQuantileCovers(t *testing.T) {
	for _, c := range []struct {
		n int
		q float64
	}{{6, 0.5}, {11, 0.5}, {20, 0.5}, {500, 0.99}, {2000, 0.99}} {
		const runs = 1000
		truth := -math.Log(1 - c.q)
		var hits, level float64
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, uint64(c.n)))
			values := make([]float64, c.n)
			for i := range values {
				values[i] = rng.ExpFloat64()
			}
			e, err := Quantile(values, c.q)
			if err != nil {
				t.Fatal(err)
			}
			hits += one(e.CI.Low <= truth && truth <= e.CI.High)
			level = e.Level
		}
		if share := hits / runs; share < level-0.025 || share > level+0.025 {
			t.Errorf("n=%d, q=%g: covers in %.1f %%, says %.1f %%", c.n, c.q, 100*share, 100*level)
		}
		if level < Confidence {
			t.Errorf("n=%d, q=%g: level %.3f", c.n, c.q, level)
		}
	}
}

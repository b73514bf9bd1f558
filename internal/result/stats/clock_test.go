// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// wire simulates both directions: delays of at least floor, with an exponential queue,
// between clocks with an offset and a drift.
func wire(rng *rand.Rand, n int, forward, backward, offset time.Duration, drift float64) []TwoWay {
	out := make([]TwoWay, n)
	for i := range out {
		at := time.Duration(i) * time.Second
		theta := offset + time.Duration(drift*float64(at))
		queue := func() time.Duration { return time.Duration(rng.ExpFloat64() * 2000) }
		out[i] = TwoWay{At: at, Forward: forward + queue() + theta, Backward: backward + queue() - theta}
	}
	return out
}

func clocks(t *testing.T, intervals []TwoWay) ClockDifference {
	t.Helper()
	c, err := Clocks(intervals)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClocksKnown(t *testing.T) {
	c := clocks(t, []TwoWay{
		{0, 1_000_050, -999_930}, {1, 1_000_080, -999_950}, {2, 1_000_040, -999_900},
	})
	// Least τ12 = 1,000,040 and τ21 = −999,950: Δ = 999,995, half the round trip 45.
	if c.Delta != 999_995 || c.Error != 45 || c.Drifts {
		t.Errorf("%+v, want Δ = 999,995 ± 45 ns", c)
	}
	if !c.Agrees(1_000_040) || c.Agrees(1_000_041) {
		t.Error("the bound of the error is not where it should be")
	}
}

// On one host both directions read one clock. The estimate must permit 0 for any
// delays; its error is half the difference of the directions.
func TestClocksAgreeWithACommonClock(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		forward := time.Duration(rng.IntN(50_000))
		backward := time.Duration(rng.IntN(50_000))
		c := clocks(t, wire(rng, 20, forward, backward, 0, 0))
		if !c.Drifts && !c.Agrees(0) {
			t.Fatalf("seed %d: %v ± %v does not permit a common clock", seed, c.Delta, c.Error)
		}
		if off := c.Delta - (forward-backward)/2; !c.Drifts && (off > 1000 || off < -1000) {
			t.Fatalf("seed %d: Δ = %v, want half of %v − %v", seed, c.Delta, forward, backward)
		}
	}
}

func TestClocksOfTwoHosts(t *testing.T) {
	const offset, ppm = -37 * time.Millisecond, 20e-6
	drifts, wrong, inDrift := 0.0, 0.0, 0.0
	const seeds = 1000
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 2))
		c, err := Clocks(wire(rng, 30, 10*time.Microsecond, 10*time.Microsecond, offset, ppm))
		if err != nil {
			t.Fatal(err)
		}
		drifts += one(c.Drifts)
		inDrift += one(c.DriftCI.Low <= ppm && ppm <= c.DriftCI.High)
		if !c.Agrees(offset) {
			t.Fatalf("seed %d: %v ± %v at time 0, want %v", seed, c.Delta, c.Error, offset)
		}
		if steady := clocks(t, wire(rng, 30, 10*time.Microsecond, 10*time.Microsecond, offset, 0)); steady.Drifts {
			wrong++
		} else if !steady.Agrees(offset) || steady.Delta-offset > time.Microsecond || offset-steady.Delta > time.Microsecond {
			t.Fatalf("seed %d: %v ± %v without drift, want %v", seed, steady.Delta, steady.Error, offset)
		}
	}
	if drifts < seeds {
		t.Errorf("a drift of 20 ppm was seen in %g of %d", drifts, seeds)
	}
	if inDrift/seeds < 0.93 || inDrift/seeds > 0.97 {
		t.Errorf("the drift's interval covers in %.1f %%, want 93–97 %%", 100*inDrift/seeds)
	}
	if wrong/seeds > 0.07 {
		t.Errorf("steady clocks reported as drifting in %.1f %%, want about 5 %%", 100*wrong/seeds)
	}
}

// The slope of the line through six points, by scipy's linregress with
// t.ppf(0.975, 4) standard errors: 1.99714 (1.88799 … 2.10630).
func TestDriftKnown(t *testing.T) {
	var c ClockDifference
	c.fitDrift([]float64{0, 1, 2, 3, 4, 5}, []float64{1.0, 3.1, 4.9, 7.2, 8.8, 11.1})
	near(t, "slope", c.Drift, 1.997142857142857, 1e-12)
	near(t, "low", c.DriftCI.Low, 1.8879901308900162, 1e-9)
	near(t, "high", c.DriftCI.High, 2.106295583395698, 1e-9)
}

func TestClocksRefuse(t *testing.T) {
	var few *TooFewError
	if _, err := Clocks(make([]TwoWay, 2)); !errors.As(err, &few) {
		t.Errorf("two intervals: %v, want a *TooFewError", err)
	}
	// A clock that was stepped in the middle: no difference fits both halves.
	jump := []TwoWay{{0, 10_000, 10_000}, {1, 10_500, 10_200}, {2, 5_010_000, -4_990_000}, {3, 10_300, 10_100}}
	if _, err := Clocks(jump); err == nil {
		t.Error("a clock that jumps was accepted as steady")
	}
}

// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// TwoWay is one interval of a link used in both directions at once, between two hosts
// with a clock each.
type TwoWay struct {
	At time.Duration // middle of the interval since the measurement began, by the first host's clock
	// Forward and Backward are the least differences between a packet's receive and
	// send time stamps: from the first host to the second, τ12, and back, τ21. One of
	// them may be negative.
	Forward, Backward time.Duration
}

// ClockDifference is an estimate of the second host's clock minus the first's.
type ClockDifference struct {
	// Delta is Δ = (τ12−τ21)/2 of the least τ12 and τ21 of all intervals. It is exact
	// if the least delays of both directions are equal; otherwise it is off by half
	// their difference.
	Delta time.Duration
	// Error bounds |Delta − truth| for any two delays that are not negative: half of
	// the least round trip. If the clocks drift, it includes the uncertainty of the
	// drift over the whole time.
	Error time.Duration
	// Noise is the mean of the intervals' own Δ, ns: its repeatability. It does not
	// show a difference between the directions.
	Noise Estimate
	// Drift is how much faster the second clock runs, as a share (1e-6 is 1 ppm), with
	// its 95 % interval. Delta applies to At 0 if the interval excludes 0, and to the
	// whole time otherwise.
	Drift   float64
	DriftCI Interval
	Drifts  bool
}

// Clocks estimates the difference of two clocks. It needs three intervals for the
// drift, and refuses intervals that no steady pair of clocks can show.
func Clocks(intervals []TwoWay) (ClockDifference, error) {
	n := len(intervals)
	if n < 3 {
		return ClockDifference{}, &TooFewError{What: "a difference of clocks", Have: float64(n), Need: 3, Unit: "intervals"}
	}
	at, delta := make([]float64, n), make([]float64, n)
	for i, w := range intervals {
		at[i] = float64(w.At)
		delta[i] = (float64(w.Forward) - float64(w.Backward)) / 2
	}
	var c ClockDifference
	c.fitDrift(at, delta)
	low, high := math.Inf(-1), math.Inf(1)
	for i, w := range intervals {
		moved := 0.0
		if c.Drifts {
			moved = c.Drift * at[i]
			delta[i] -= moved
		}
		// A delay is not negative: −τ21 ≤ truth ≤ τ12 in every interval.
		low = math.Max(low, -float64(w.Backward)-moved)
		high = math.Min(high, float64(w.Forward)-moved)
	}
	if low > high {
		return c, fmt.Errorf("the clocks are not steady: one interval puts their difference above %v, another below %v", time.Duration(low), time.Duration(high))
	}
	var err error
	c.Noise, err = Mean(delta)
	wide := (high - low) / 2
	if c.Drifts {
		wide += (c.DriftCI.High - c.Drift) * slices.Max(at)
	}
	c.Delta, c.Error = time.Duration(math.Round((low+high)/2)), time.Duration(math.Ceil(wide))
	return c, err
}

// fitDrift is the least-squares slope of delta over at with its t interval.
func (c *ClockDifference) fitDrift(at, delta []float64) {
	mean := stat.Mean(at, nil)
	sxx := 0.0
	for _, x := range at {
		sxx += (x - mean) * (x - mean)
	}
	if sxx == 0 {
		return // all at one time: no slope
	}
	intercept, slope := stat.LinearRegression(at, delta, nil, false)
	rss := 0.0
	for i := range at {
		r := delta[i] - intercept - slope*at[i]
		rss += r * r
	}
	df := len(at) - 2
	half := tQuantile(1-(1-Confidence)/2, df) * math.Sqrt(rss/float64(df)/sxx)
	c.Drift, c.DriftCI = slope, Interval{slope - half, slope + half}
	c.Drifts = c.DriftCI.Low > 0 || c.DriftCI.High < 0
}

// Agrees reports whether the estimate permits a known difference: 0 for two hosts, or
// namespaces, with one clock.
func (c ClockDifference) Agrees(known time.Duration) bool {
	return known >= c.Delta-c.Error && known <= c.Delta+c.Error
}

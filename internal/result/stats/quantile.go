// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// QuantileEstimate is a quantile of single values with the order statistics that
// enclose it.
type QuantileEstimate struct {
	N     int
	Value float64
	// CI is the narrowest pair of order statistics whose tails each miss the quantile
	// with at most half of 1 − Confidence; the extremes if there are too few values.
	CI Interval
	// Level is CI's confidence: less than Confidence if there are too few values.
	Level float64
}

// Median is Quantile of 0.5: six values or more enclose it with Confidence.
func Median(values []float64) (QuantileEstimate, error) { return Quantile(values, 0.5) }

// Quantile estimates the q-quantile of independent values of one distribution of any
// shape. Its interval is exact for continuous values (Conover, Practical Nonparametric
// Statistics, 3rd edition, 1999, §3.2). It returns a *TooFewError if there is no value.
func Quantile(values []float64, q float64) (QuantileEstimate, error) {
	n := len(values)
	if n == 0 {
		return QuantileEstimate{}, &TooFewError{What: "a quantile", Need: 1, Unit: "values"}
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	at := q * float64(n-1)
	below, above := sorted[int(math.Floor(at))], sorted[int(math.Ceil(at))]
	e := QuantileEstimate{N: n, Value: below + (above-below)*(at-math.Floor(at))}

	const tail = (1 - Confidence) / 2
	// The value of rank r (from 1) exceeds the quantile if fewer than r values are below it.
	fewer := func(r int) float64 { return distuv.Binomial{N: float64(n), P: q}.CDF(float64(r - 1)) }
	low := max(1, sort.Search(n, func(r int) bool { return fewer(r+1) > tail }))
	high := min(n, 1+sort.Search(n, func(r int) bool { return fewer(r+1) >= 1-tail }))
	e.CI = Interval{sorted[low-1], sorted[high-1]}
	e.Level = fewer(high) - fewer(low)
	return e, nil
}

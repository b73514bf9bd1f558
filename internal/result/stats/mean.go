// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean over trials, in the unit of the values.
type Estimate struct {
	N    int
	Mean float64
	SD   float64
	// CI is the two-sided 95 % Student-t interval.
	CI Interval
	// Lower and Upper are one-sided Student-t bounds: each holds by itself with the
	// confidence Level.
	Level        float64
	Lower, Upper float64
}

// Mean is MeanAt of Confidence.
func Mean(values []float64) (Estimate, error) { return MeanAt(Confidence, values) }

// MeanAt estimates the mean of independent values, one a trial, with one-sided bounds
// at a confidence level. It returns a *TooFewError for fewer than two.
//
// In simulation, its 95 % interval covers the truth in 93–96 % on normal and uniform
// values, 5 to 30 of them. On skewed values it covers less: 92.7 % on 5 lognormal
// values with σ = 0.3, 88–93 % on exponential ones, 82–87 % on lognormal ones with σ =
// 1.
func MeanAt(level float64, values []float64) (Estimate, error) {
	n := len(values)
	if n < 2 {
		return Estimate{}, &TooFewError{What: "a mean with an interval", Have: float64(n), Need: 2, Unit: "trials"}
	}
	mean, sd := stat.MeanStdDev(values, nil)
	se := sd / math.Sqrt(float64(n))
	two := tQuantile(1-(1-Confidence)/2, n-1) * se
	one := tQuantile(level, n-1) * se
	return Estimate{
		N: n, Mean: mean, SD: sd,
		CI:    Interval{mean - two, mean + two},
		Level: level, Lower: mean - one, Upper: mean + one,
	}, nil
}

// LowerMean is a one-sided lower bound of the mean of independent values, one a trial, at
// a confidence level: Student's t on the logarithms. It bounds the geometric mean, which
// never exceeds the mean. Unlike a bound from the values, it stays positive if few trials
// differ much. If a value is not positive, it is the bound of MeanAt.
//
// It returns a *TooFewError for fewer than two values.
func LowerMean(level float64, values []float64) (float64, error) {
	positive, err := logs(values)
	if err != nil {
		e, err := MeanAt(level, values)
		return e.Lower, err
	}
	e, err := MeanAt(level, positive)
	if err != nil {
		return 0, err
	}
	return min(math.Exp(e.Lower), stat.Mean(values, nil)), nil // not above by rounding
}

// tQuantile is the p-quantile of Student's t with df degrees of freedom. The bounds of
// one quantile need the same few values hundreds of times.
func tQuantile(p float64, df int) float64 {
	type key struct {
		p  float64
		df int
	}
	if q, ok := tQuantiles.Load(key{p, df}); ok {
		return q.(float64)
	}
	q := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(df)}.Quantile(p)
	tQuantiles.Store(key{p, df}, q)
	return q
}

// tQuantiles caches tQuantile.
var tQuantiles sync.Map

// TrialsToResolve estimates how many trials with the same spread would put a one-sided
// bound between the mean and limit; ok is false above ten thousand.
func (e Estimate) TrialsToResolve(limit float64) (trials int, ok bool) {
	for n := max(2, e.N); n <= 10_000; n += 1 + n/10 {
		if tQuantile(e.Level, n-1)*e.SD/math.Sqrt(float64(n)) < math.Abs(e.Mean-limit) {
			return n, true
		}
	}
	return 0, false
}

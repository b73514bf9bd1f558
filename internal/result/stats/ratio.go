// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// BootstrapFrom is the number of pairs from which a ratio's interval is bootstrapped
// instead of computed by Student's t.
const BootstrapFrom = 20

const resamples = 10000

// Pair holds two values of one round: the same conditions, two configurations.
type Pair struct {
	A, B float64
}

// RatioEstimate is the geometric mean of A/B with its 95 % interval.
type RatioEstimate struct {
	N      int
	Ratio  float64
	CI     Interval
	Method string
}

// Indistinguishable reports whether the interval covers a ratio of 1.
func (r RatioEstimate) Indistinguishable() bool {
	return r.CI.Low <= 1 && 1 <= r.CI.High
}

// Ratio estimates A/B from paired trials by a Student-t interval on the logarithms.
// From BootstrapFrom pairs on, it uses an expanded percentile bootstrap of their mean,
// which resamples whole pairs and is fixed by seed. It returns a *TooFewError for fewer
// than two pairs, and refuses values that are not positive.
//
// In simulation on normal and moderately skewed logarithms, the intervals cover the
// truth in 93–97 % for 5, 10, 20 and 30 pairs; docs/method.md has the table.
func Ratio(pairs []Pair, seed uint64) (RatioEstimate, error) { return ratio(pairs, seed, resamples) }

func ratio(pairs []Pair, seed uint64, draws int) (RatioEstimate, error) {
	for i, p := range pairs {
		if !(p.A > 0 && p.B > 0) {
			return RatioEstimate{}, fmt.Errorf("pair %d: a ratio needs two positive values, there are %g and %g", i, p.A, p.B)
		}
	}
	logs := logRatios(pairs)
	e, err := Mean(logs)
	if err != nil {
		return RatioEstimate{}, fmt.Errorf("ratio of paired trials: %w", err)
	}
	r := RatioEstimate{N: e.N, Ratio: math.Exp(e.Mean), CI: e.CI, Method: "t interval on log ratios"}
	if e.N >= BootstrapFrom {
		r.CI, r.Method = bootstrap(logs, seed, draws), "bootstrap"
	}
	r.CI = Interval{math.Exp(r.CI.Low), math.Exp(r.CI.High)}
	return r, nil
}

func logRatios(pairs []Pair) []float64 {
	logs := make([]float64, len(pairs))
	for i, p := range pairs {
		logs[i] = math.Log(p.A / p.B)
	}
	return logs
}

// bootstrap is the percentile interval of the mean, expanded so that it is not too
// narrow for few values (Hesterberg, The American Statistician 69, 2015, §5.1). The
// plain interval is as wide as a normal interval with n, instead of n−1, in the
// variance.
func bootstrap(values []float64, seed uint64, draws int) Interval {
	n := len(values)
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	means := make([]float64, draws)
	for i := range means {
		var sum float64
		for range values {
			sum += values[rng.IntN(n)]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	tail := distuv.UnitNormal.CDF(-math.Sqrt(float64(n)/float64(n-1)) * tQuantile(1-(1-Confidence)/2, n-1))
	return Interval{
		stat.Quantile(tail, stat.Empirical, means, nil),
		stat.Quantile(1-tail, stat.Empirical, means, nil),
	}
}

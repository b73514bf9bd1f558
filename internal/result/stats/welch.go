// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Difference is the difference of two unpaired sets of values, such as those of two
// runs.
type Difference struct {
	NA, NB int
	// Value is mean(B) − mean(A), with its two-sided 95 % interval.
	Value float64
	CI    Interval
	// P is the two-sided p-value of no difference. It is 0 or 1 if neither set varies.
	P  float64
	DF float64 // degrees of freedom (Welch–Satterthwaite)
}

// Indistinguishable reports whether the interval covers 0.
func (d Difference) Indistinguishable() bool { return d.CI.Low <= 0 && 0 <= d.CI.High }

// Welch compares the means of independent values, one a trial, with unequal variances
// (Welch, Biometrika 34, 1947). It returns a *TooFewError for fewer than two values on
// a side.
//
// In simulation on normal values, its intervals cover the truth in 94–96 % for 5, 10
// and 30 values a side. One side may vary three times as much.
func Welch(a, b []float64) (Difference, error) {
	d := Difference{NA: len(a), NB: len(b), P: 1}
	if n := min(len(a), len(b)); n < 2 {
		return d, &TooFewError{What: "a difference with an interval", Have: float64(n), Need: 2, Unit: "trials on each side"}
	}
	meanA, sdA := stat.MeanStdDev(a, nil)
	meanB, sdB := stat.MeanStdDev(b, nil)
	d.Value = meanB - meanA
	va, vb := sdA*sdA/float64(d.NA), sdB*sdB/float64(d.NB)
	se := math.Sqrt(va + vb)
	if se == 0 {
		d.CI = Interval{d.Value, d.Value}
		if d.Value != 0 {
			d.P = 0
		}
		d.DF = float64(d.NA + d.NB - 2)
		return d, nil
	}
	d.DF = (va + vb) * (va + vb) / (va*va/float64(d.NA-1) + vb*vb/float64(d.NB-1))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: d.DF}
	half := t.Quantile(1-(1-Confidence)/2) * se
	d.CI = Interval{d.Value - half, d.Value + half}
	d.P = 2 * t.CDF(-math.Abs(d.Value)/se)
	return d, nil
}

// UnpairedRatio estimates B/A, the ratio of geometric means, from unpaired values:
// Welch's interval on logarithms. It refuses values that are not positive.
func UnpairedRatio(a, b []float64) (RatioEstimate, float64, error) {
	la, err := logs(a)
	if err != nil {
		return RatioEstimate{}, 1, err
	}
	lb, err := logs(b)
	if err != nil {
		return RatioEstimate{}, 1, err
	}
	d, err := Welch(la, lb)
	if err != nil {
		return RatioEstimate{}, 1, err
	}
	return RatioEstimate{
		N: min(d.NA, d.NB), Ratio: math.Exp(d.Value), Method: "Welch's t interval on logarithms",
		CI: Interval{math.Exp(d.CI.Low), math.Exp(d.CI.High)},
	}, d.P, nil
}

func logs(values []float64) ([]float64, error) {
	out := make([]float64, len(values))
	for i, v := range values {
		if !(v > 0) {
			return nil, fmt.Errorf("value %d: a ratio needs positive values, this one is %g", i, v)
		}
		out[i] = math.Log(v)
	}
	return out, nil
}

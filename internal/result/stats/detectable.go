// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

// Power is the probability with which a smallest detectable difference is detected.
const Power = 0.8

// Detectable is the smallest difference that a comparison by pairs can tell
// from noise, as A/A runs show it.
type Detectable struct {
	AA    RatioEstimate // of the A/A pairs themselves: its interval should cover 1
	SD    float64       // of the logarithm of an A/A pair's ratio
	Pairs int           // of the comparison
	// Ratio is above 1: a true ratio of Ratio, or of 1/Ratio, is called
	// different with the probability Power.
	Ratio float64
}

// SmallestDetectable estimates from A/A pairs, two trials of one configuration
// in each, what a comparison of so many pairs can detect: (t₀.₉₇₅ + t₀.₈)·s/√n
// on the logarithm (Cohen, Statistical Power Analysis, 1988, with Student's t
// in the normal's place). It returns a *TooFewError for fewer than two pairs on
// either side.
func SmallestDetectable(aa []Pair, pairs int, seed uint64) (Detectable, error) {
	d := Detectable{Pairs: pairs}
	if pairs < 2 {
		return d, &TooFewError{What: "a comparison", Have: float64(pairs), Need: 2, Unit: "pairs"}
	}
	var err error
	if d.AA, err = Ratio(aa, seed); err != nil {
		return d, fmt.Errorf("A/A runs: %w", err)
	}
	d.SD = stat.StdDev(logRatios(aa), nil)
	d.Ratio = math.Exp((tQuantile(1-(1-Confidence)/2, pairs-1) + tQuantile(Power, pairs-1)) * d.SD / math.Sqrt(float64(pairs)))
	return d, nil
}

// Indistinguishable reports whether a ratio cannot be told from 1: by its own
// interval, or since it is nearer to 1 than what A/A runs can detect.
func (d Detectable) Indistinguishable(r RatioEstimate) bool {
	return r.Indistinguishable() || r.Ratio < d.Ratio && r.Ratio > 1/d.Ratio
}

// RunNoise is how far two runs of one configuration differ, at most, in 95 % of
// cases: t₀.₉₇₅·s·√2 over one value of each of several such runs. Trials of one
// run share its conditions, so that their spread does not show this. Two runs
// give a very wide bound, and five a useful one. It returns a *TooFewError for
// fewer than two.
func RunNoise(runs []float64) (float64, error) {
	n := len(runs)
	if n < 2 {
		return 0, &TooFewError{What: "the noise between runs", Have: float64(n), Need: 2, Unit: "runs"}
	}
	return tQuantile(1-(1-Confidence)/2, n-1) * stat.StdDev(runs, nil) * math.Sqrt2, nil
}

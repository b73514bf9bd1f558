// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

// Power is the probability with which a smallest detectable difference is detected.
const Power = 0.8

// Detectable is the smallest difference that a paired comparison can distinguish from
// noise, as A/A runs show it.
type Detectable struct {
	AA    RatioEstimate // of the A/A pairs: its interval should cover 1
	SD    float64       // of the logarithm of an A/A pair's ratio
	Pairs int           // of the comparison
	// Ratio is above 1. A true ratio of Ratio, or of 1/Ratio, is called different with
	// probability Power.
	Ratio float64
}

// SmallestDetectable estimates from A/A pairs, each two trials of one configuration,
// what a comparison of that many pairs can detect. On the logarithm this is (t₀.₉₇₅ +
// t₀.₈)·s/√n (Cohen, Statistical Power Analysis, 1988, with Student's t for the
// normal). It returns a *TooFewError for fewer than two pairs on either side.
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

// RunNoise is the largest difference between two runs of one configuration in 95 % of
// cases: t₀.₉₇₅·s·√2 over one value of each of several runs. Trials of one run share
// its conditions, so their spread does not show this. Two runs give a very wide bound,
// five a useful one. It returns a *TooFewError for fewer than two.
func RunNoise(runs []float64) (float64, error) {
	n := len(runs)
	if n < 2 {
		return 0, &TooFewError{What: "the noise between runs", Have: float64(n), Need: 2, Unit: "runs"}
	}
	return tQuantile(1-(1-Confidence)/2, n-1) * stat.StdDev(runs, nil) * math.Sqrt2, nil
}

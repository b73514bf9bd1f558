// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"slices"
)

// OutlierLimit is the modified z-score beyond which a value is flagged
// (Iglewicz & Hoaglin, 1993).
const OutlierLimit = 3.5

// Outliers flags the values whose 0.6745·|x−median|/MAD exceeds OutlierLimit. Flagged
// values must be shown, never deleted. If more than half of the values are equal (MAD
// 0), every different value is flagged.
func Outliers(values []float64) []bool {
	flags := make([]bool, len(values))
	if len(values) < 3 {
		return flags
	}
	centre := median(values)
	dev := make([]float64, len(values))
	for i, v := range values {
		dev[i] = math.Abs(v - centre)
	}
	mad := median(dev)
	for i, d := range dev {
		flags[i] = 0.6745*d > OutlierLimit*mad
	}
	return flags
}

func median(values []float64) float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

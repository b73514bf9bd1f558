// SPDX-License-Identifier: Apache-2.0

// Package stats turns the raw outcome of trials into estimates with bounds. It is pure:
// no clock, no files, and randomness only from a given seed.
package stats

import "fmt"

// Confidence is the level of every interval and one-sided bound that names no other.
const Confidence = 0.95

// TooFewError says that the data cannot support the requested estimate.
type TooFewError struct {
	What string  // the estimate
	Have float64 // available
	Need float64 // required
	Unit string  // "trials", "samples"
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("%s needs at least %.0f %s, there are %.0f", e.What, e.Need, e.Unit, e.Have)
}

// Interval is a two-sided confidence interval.
type Interval struct {
	Low, High float64
}

// SPDX-License-Identifier: Apache-2.0

// Package stats turns the raw outcome of trials into estimates with bounds. It
// is pure: no clock, no files, and randomness only from a seed it is given.
package stats

import "fmt"

// Confidence is the level of every interval and one-sided bound that names no other.
const Confidence = 0.95

// TooFewError says that the data cannot support the estimate asked for.
type TooFewError struct {
	What string  // what was to be estimated
	Have float64 // how many there are
	Need float64 // how many it takes
	Unit string  // "trials", "samples"
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("%s needs at least %.0f %s, there are %.0f", e.What, e.Need, e.Unit, e.Have)
}

// Interval is a two-sided confidence interval.
type Interval struct {
	Low, High float64
}

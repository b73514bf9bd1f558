// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"math"
)

// Quantities of published experiments that no link has.
const (
	QStart    Quantity = "start"    // a function's sandbox, from nothing until a command has run in it
	QWakeup   Quantity = "wakeup"   // how late timers wake a thread
	QSpin     Quantity = "spin"     // what interrupts a thread that spins
	QChecks   Quantity = "checks"   // what a function must not be able to do
	QPlanned  Quantity = "planned"  // what the planner would give to functions
	QImage    Quantity = "image"    // the program of an image
	QRecovery Quantity = "recovery" // how long a killed function is away
)

// MarkNotRealtime says that a claim about real time was measured without it.
const MarkNotRealtime = "no RT kernel"

// Experiment is what a trial of a published experiment has beside its result.
type Experiment struct {
	Cell string `json:"cell"` // what was measured; rows of experiments refer to it
	// Values are the figures that rows show, in the units that these have.
	Values map[string]float64 `json:"values,omitempty"`
	// Why says of figures that this trial could not give why, by their names.
	Why map[string]string `json:"why,omitempty"`
}

// check refuses values that no measurement gives; nil is none.
func (e *Experiment) check() error {
	if e == nil {
		return nil
	}
	for name, v := range e.Values {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("a %s of %v", name, v)
		}
	}
	return nil
}

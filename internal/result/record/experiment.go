// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"math"
)

// Quantities of published experiments that links do not have.
const (
	QStart    Quantity = "start"    // from no sandbox until a command has run in it
	QWakeup   Quantity = "wakeup"   // timer wake-up latency
	QSpin     Quantity = "spin"     // interruptions of a spinning thread
	QChecks   Quantity = "checks"   // actions forbidden to a function
	QPlanned  Quantity = "planned"  // the planner's result for functions
	QImage    Quantity = "image"    // the program of an image
	QRecovery Quantity = "recovery" // outage of a killed function
	QPool     Quantity = "pool"     // what an event costs a pool of workers
	QRAN      Quantity = "ran"      // a mobile's service by a RAN
	// QFronthaul is what both ends of a fronthaul count.
	QFronthaul Quantity = "fronthaul"
)

// MarkNotRealtime marks a real-time claim that was measured without an RT kernel.
const MarkNotRealtime = "no RT kernel"

// Experiment is the additional data of a published experiment's trial.
type Experiment struct {
	Cell string `json:"cell"` // what was measured; rows of experiments refer to it
	// Values are the figures for rows, in the figures' units.
	Values map[string]float64 `json:"values,omitempty"`
	// Why explains, by name, figures that this trial could not give.
	Why map[string]string `json:"why,omitempty"`
}

// check refuses impossible values; nil is valid.
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

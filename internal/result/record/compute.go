// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// QShare is a trial of a function's compute: a spinning thread on each of its CPUs. QSpin
// and QWakeup are others, with Compute set.
const QShare Quantity = "cpu_share"

// Compute is what threads in a function's control group got of its CPUs.
type Compute struct {
	// Neighbours are the functions in whose control groups a thread spun on each of their
	// CPUs meanwhile.
	Neighbours []string `json:"neighbours"`
	CPUs       []CPU    `json:"cpus"`
}

// CPU is what one thread got of one CPU.
type CPU struct {
	CPU int `json:"cpu"`
	// Share is the thread's CPU time by the length of the trial, 0 to 1; nil: the
	// instrument does not say.
	Share *float64 `json:"share,omitempty"`
	// Longest is the longest time for which the thread could run and had no CPU, ns.
	Longest time.Duration `json:"longest"`
}

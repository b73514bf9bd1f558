// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Demand counts, for each function, the threads that want a CPU nearly all the
// time during a trial: one for each client, and one for each server. Kernel
// threads are not counted.
type Demand map[string]int

// With is the sum of two demands.
func (d Demand) With(o Demand) Demand {
	sum := Demand{}
	for _, part := range []Demand{d, o} {
		for function, threads := range part {
			sum[function] += threads
		}
	}
	return sum
}

// The limits beyond which a trial is marked.
const (
	maxBusyBefore = 0.20 // share of all CPU time
	maxStolen     = 0.02
)

// Preflight returns the marks of a trial that follow from the state of the machine.
// busyBefore is the share of its CPU time that other work used before the trial.
func Preflight(env record.Environment, d Demand, busyBefore float64) []string {
	marks := []string{}
	if oversubscribed(env, d) {
		marks = append(marks, record.MarkOversubscribed)
	}
	// Without cpufreq there is no governor to blame or set.
	if env.Governor != "" && env.Governor != "none" && env.Governor != "performance" {
		marks = append(marks, record.MarkGovernor)
	}
	if busyBefore > maxBusyBefore {
		marks = append(marks, record.MarkBusy)
	}
	if env.OtherRuns > 0 {
		marks = append(marks, record.MarkParallel)
	}
	if env.Stolen > maxStolen {
		marks = append(marks, record.MarkStolen)
	}
	if env.Virtual == inventory.VirtualTCG {
		marks = append(marks, record.MarkEmulated)
	}
	if slices.Contains(strings.Fields(env.CmdLine), inventory.LabParameter) {
		marks = append(marks, record.MarkLab)
	}
	return marks
}

// oversubscribed reports whether some CPU set is smaller than the number of
// threads restricted to it. Sets are the whole machine, and each function's
// pinned CPUs.
func oversubscribed(env record.Environment, d Demand) bool {
	sets := [][]int{env.CPUs}
	for function := range d {
		sets = append(sets, allowed(env, function))
	}
	for _, set := range sets {
		threads := 0
		for function, n := range d {
			if within(allowed(env, function), set) {
				threads += n
			}
		}
		if threads > len(set) {
			return true
		}
	}
	return false
}

// allowed are the CPUs on which a function's threads may run.
func allowed(env record.Environment, function string) []int {
	if pinned := env.Pinning[function]; len(pinned) > 0 {
		return pinned
	}
	return env.CPUs
}

func within(inner, outer []int) bool {
	for _, cpu := range inner {
		if !slices.Contains(outer, cpu) {
			return false
		}
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

// Package cpulist reads and writes lists of CPUs in the kernel's form: "0-2,5".
package cpulist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Without is cpus less those that are taken.
func Without(cpus, taken []int) []int {
	return slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return slices.Contains(taken, cpu) })
}

// Format writes a CPU list as the kernel does: "0-2,5". Empty for none.
func Format(cpus []int) string {
	sorted := slices.Clone(cpus)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		part := strconv.Itoa(sorted[i])
		if j > i {
			part += "-" + strconv.Itoa(sorted[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// maxCPU bounds Parse; the kernel's own limit is 8192.
const maxCPU = 8191

// Parse reads a CPU list as the kernel writes it: "0-2,5". Ascending.
func Parse(s string) ([]int, error) {
	var cpus []int
	for _, part := range strings.FieldsFunc(strings.TrimSpace(s), func(r rune) bool { return r == ',' }) {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		first, err1 := strconv.ParseUint(lo, 10, 32)
		last, err2 := strconv.ParseUint(hi, 10, 32)
		if err1 != nil || err2 != nil || last < first || last > maxCPU {
			return nil, fmt.Errorf("%q is not a CPU list such as 0-2,5", s)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

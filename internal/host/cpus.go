// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// AllowedCPUs lists the CPUs that this process may run on, ascending.
func AllowedCPUs() ([]int, error) {
	var set unix.CPUSet
	// Of the main thread: the calling one may be in a function's cpuset.
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("CPUs allowed for this process: %w", err)
	}
	var cpus []int
	for cpu := 0; cpu < len(set)*64 && len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

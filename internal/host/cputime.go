// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPUTimes is the time of all CPUs together since boot, in clock ticks.
type CPUTimes struct {
	Total, Idle, Stolen uint64
}

// ReadCPUTimes reads /proc/stat (proc(5)).
func ReadCPUTimes() (CPUTimes, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return CPUTimes{}, err
	}
	return parseCPUTimes(string(b))
}

func parseCPUTimes(stat string) (CPUTimes, error) {
	first, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(first)
	// cpu user nice system idle iowait irq softirq steal; guest time is part of user.
	if len(fields) < 9 || fields[0] != "cpu" {
		return CPUTimes{}, fmt.Errorf("/proc/stat: malformed line %q", first)
	}
	var t CPUTimes
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return CPUTimes{}, fmt.Errorf("/proc/stat: %w", err)
		}
		t.Total += ticks
		switch i {
		case 3, 4:
			t.Idle += ticks
		case 7:
			t.Stolen = ticks
		}
	}
	return t, nil
}

// ticksPerSecond is USER_HZ, the unit of /proc/stat on every Linux of today.
const ticksPerSecond = 100

// Share is the share of the CPU time between b and the later a that a CPU time is.
func (a CPUTimes) Share(b CPUTimes, of time.Duration) float64 {
	total := float64(a.Total) - float64(b.Total)
	if total <= 0 {
		return 0
	}
	return of.Seconds() * ticksPerSecond / total
}

// Since returns two shares of the CPU time between b and the later a, 0 to 1: not
// idle (including stolen time), and stolen by a hypervisor.
func (a CPUTimes) Since(b CPUTimes) (busy, stolen float64) {
	total := float64(a.Total) - float64(b.Total)
	if total <= 0 {
		return 0, 0
	}
	share := func(now, then uint64) float64 {
		// The kernel's iowait may decrease.
		return min(max((float64(now)-float64(then))/total, 0), 1)
	}
	return 1 - share(a.Idle, b.Idle), share(a.Stolen, b.Stolen)
}

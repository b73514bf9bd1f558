// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
)

// How often, and for how long, the machine is observed.
const (
	looks     = 20
	lookEvery = 50 * time.Millisecond
)

// LookAtMachine records current doubts about this machine, before a bench with
// this many busy threads. It takes a second.
func (s *Figures) LookAtMachine(ctx context.Context, threads int) error {
	cpus, err := host.AllowedCPUs()
	if err != nil {
		return err
	}
	if len(cpus) < threads {
		s.Mark("oversubscribed")
	}
	// Count the threads that run now: the last minute's mean would include ended ones, such as
	// the build of the bench.
	seen := 0
	for range looks {
		text, err := os.ReadFile("/proc/loadavg")
		if err == nil && othersRun(string(text)) {
			seen++
		}
		if err := host.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
	if seen > looks/2 {
		s.Mark("busy machine")
	}
	return nil
}

// othersRun reports whether /proc/loadavg shows threads other than its reader.
func othersRun(loadavg string) bool {
	var a, b, c float64
	var running int
	n, _ := fmt.Sscanf(strings.TrimSpace(loadavg), "%f %f %f %d/", &a, &b, &c, &running)
	return n == 4 && running > 1
}

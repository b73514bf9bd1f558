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

// How often, and for how long, the machine is looked at.
const (
	looks     = 20
	lookEvery = 50 * time.Millisecond
)

// LookAtMachine marks doubts about this machine now, before a bench with
// so many busy threads. It takes a second.
func (s *Figures) LookAtMachine(ctx context.Context, threads int) error {
	cpus, err := host.AllowedCPUs()
	if err != nil {
		return err
	}
	if len(cpus) < threads {
		s.Mark("oversubscribed")
	}
	// Count the threads that run now: the mean of the last minute would include those that have
	// ended, such as the build of the bench.
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

// othersRun reports whether /proc/loadavg says that more than its reader is running.
func othersRun(loadavg string) bool {
	var a, b, c float64
	var running int
	n, _ := fmt.Sscanf(strings.TrimSpace(loadavg), "%f %f %f %d/", &a, &b, &c, &running)
	return n == 4 && running > 1
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"
)

var daemons = []string{"dray-node", "dray-broker", "dray-operator"}

// usage is what a daemon uses on all nodes together.
type usage struct {
	rss, cgroup, kernel float64 // bytes: resident; charged to its pods; of that, the kernel's own
	cpu                 float64 // seconds in each second
}

// measure is what the daemons use, over a minute.
func (c *cluster) measure() map[string]usage {
	c.t.Helper()
	ticks := map[string]float64{}
	for _, d := range daemons {
		ticks[d] = c.sample(d).cpu
	}
	start := time.Now()
	time.Sleep(measureFor)
	all := map[string]usage{}
	for _, d := range daemons {
		u := c.sample(d)
		u.cpu = (u.cpu - ticks[d]) / time.Since(start).Seconds()
		all[d] = u
	}
	return all
}

// sample reads the figures of a daemon's processes; cpu is seconds since they started.
func (c *cluster) sample(daemon string) usage {
	c.t.Helper()
	const script = `
group=$(awk -F: '$2 == "memory" || $1 == 0 { print ($2 == "memory" ? "/memory" : "") $3; exit }' /proc/$0/cgroup)
cd "/sys/fs/cgroup$group"
cat memory.usage_in_bytes 2>/dev/null || cat memory.current
cat memory.kmem.usage_in_bytes 2>/dev/null || awk '$1 == "kernel" { print $2 }' memory.stat
awk '$1 == "VmRSS:" { print $2 }' /proc/$0/status
awk '{ print $14 + $15 }' /proc/$0/stat
getconf CLK_TCK`
	var sum usage
	for _, node := range []string{"n1", "n2"} {
		for _, pid := range c.processes(node, "/"+daemon) {
			var cgroup, kernel, kib, ticks, hz float64
			out := strings.Join(strings.Fields(c.on(node, "sh", "-c", script, pid)), " ")
			if _, err := fmt.Sscan(out, &cgroup, &kernel, &kib, &ticks, &hz); err != nil {
				c.t.Fatalf("%s on %s: %q: %v", daemon, node, out, err)
			}
			sum.rss, sum.cgroup, sum.kernel, sum.cpu = sum.rss+kib*1024, sum.cgroup+cgroup, sum.kernel+kernel, sum.cpu+ticks/hz
		}
	}
	return sum
}

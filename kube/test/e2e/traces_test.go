// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// traces is what pods with ports could leave, one thing a line: files and
// directories of Drayage, mounts, interfaces and open files of the broker on each
// node, and claims and templates in the cluster.
func (c *cluster) traces() []string {
	c.t.Helper()
	const script = `
find /run/dray /var/run/cdi /var/lib/kubelet/plugins/ports.drayage.io /var/lib/kubelet/plugins_registry -mindepth 1 | sed 's/^/file /'
echo "mounts $(grep -c . /proc/1/mountinfo)"
echo "interfaces $(ls /sys/class/net | wc -l)"
`
	var all []string
	for _, node := range []string{"n1", "n2"} {
		for _, line := range strings.Split(strings.TrimSpace(c.on(node, "sh", "-c", script)), "\n") {
			all = append(all, node+" "+line)
		}
		for _, pid := range c.processes(node, "/dray-broker") {
			all = append(all, node+" broker has open "+strings.Join(strings.Fields(c.on(node, "sh", "-c", "ls /proc/"+pid+"/fd | wc -l")), ""))
		}
	}
	return append(all, strings.Fields(c.kubectl("get", "resourceclaims,resourceclaimtemplates,chains", "-A", "-o", "name"))...)
}

// settledTraces are those once nothing changes, as when pods before have ended wholly.
func (c *cluster) settledTraces() (now []string) {
	c.t.Helper()
	c.until("no change", func() error {
		before := now
		time.Sleep(3 * time.Second)
		if now = c.traces(); !slices.Equal(before, now) {
			return errors.New("traces still change")
		}
		return nil
	})
	return now
}

// sameTraces says what has been added.
func sameTraces(before, after []string) error {
	var errs []error
	for _, line := range after {
		if !slices.Contains(before, line) {
			errs = append(errs, fmt.Errorf("new: %s", line))
		}
	}
	return errors.Join(errs...)
}

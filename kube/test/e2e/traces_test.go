// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// traces is what pods with ports could leave, one thing a line: files and
// directories of Drayage, mounts, interfaces and open files of the broker on each
// node, and claims and templates in the cluster. Pods that have ended may still have networks.
func (c *cluster) traces() []string {
	c.t.Helper()
	const script = `
find /run/dray /var/run/cdi /var/lib/kubelet/plugins/ports.drayage.io /var/lib/kubelet/plugins_registry -mindepth 1 | sed 's/^/file /'
sed 's/.* - \([^ ]*\) .*/\1/' /proc/1/mountinfo | grep -v nsfs | sort | uniq -c | while read -r n kind; do echo "mounts of $kind $n"; done
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

// settledTraces are those once nothing changes, and pods before have ended wholly.
func (c *cluster) settledTraces() (now []string) {
	c.t.Helper()
	c.until("no change", func() error {
		before := now
		time.Sleep(3 * time.Second)
		if now = c.traces(); !slices.Equal(before, now) {
			return errors.New("traces still change")
		}
		return c.ownNetworks()
	})
	return now
}

// ownNetworks says which node still has a network of a pod that has ended.
func (c *cluster) ownNetworks() error {
	text, err := c.try("get", "pods", "-A", "-o", "json")
	var pods corev1.PodList
	if err = errors.Join(err, json.Unmarshal([]byte(text), &pods)); err != nil {
		return err
	}
	own := map[string]int{}
	for _, p := range pods.Items {
		if !p.Spec.HostNetwork {
			own[p.Spec.NodeName]++
		}
	}
	for _, node := range []string{"n1", "n2"} {
		if has := len(strings.Fields(c.on(node, "ls", "/run/netns"))); has > own[node] {
			return fmt.Errorf("%s has the networks of %d pods, and %d pods", node, has, own[node])
		}
	}
	return nil
}

// sameTraces says what has been added, and then also what was there in its place.
func sameTraces(before, after []string) error {
	var errs []error
	for _, line := range after {
		if !slices.Contains(before, line) {
			errs = append(errs, fmt.Errorf("new: %s", line))
		}
	}
	for _, line := range before {
		if len(errs) > 0 && !slices.Contains(after, line) {
			errs = append(errs, fmt.Errorf("gone: %s", line))
		}
	}
	return errors.Join(errs...)
}

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
func (c *cluster) traces() ([]string, error) {
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
			// Some calls are under way at any time, and a call is short.
			fewest := "for i in 1 2 3 4 5; do ls /proc/" + pid + "/fd | wc -l; sleep 0.1; done | sort -n | head -n 1"
			all = append(all, node+" broker has open "+strings.TrimSpace(c.on(node, "sh", "-c", fewest)))
		}
	}
	objects, err := c.try("get", "resourceclaims,resourceclaimtemplates,chains", "-A", "-o", "name")
	return append(all, strings.Fields(objects)...), err
}

// settledTraces are those once nothing changes, and pods before have ended wholly.
func (c *cluster) settledTraces() (now []string) {
	c.t.Helper()
	c.until("no change", func() error {
		before := now
		time.Sleep(3 * time.Second)
		var err error
		if now, err = c.traces(); err != nil || !slices.Equal(before, now) {
			return fmt.Errorf("traces still change: %v", err)
		}
		return c.onlyWhatRuns()
	})
	return now
}

// onlyWhatRuns says which pod is not whole, or which node still has something of a pod that has ended.
func (c *cluster) onlyWhatRuns() error {
	text, err := c.try("get", "pods", "-A", "-o", "json")
	var pods corev1.PodList
	if err = errors.Join(err, json.Unmarshal([]byte(text), &pods)); err != nil {
		return err
	}
	type count struct{ pods, networks, tasks int }
	own, has := map[string]count{}, count{}
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			if !s.Ready {
				return fmt.Errorf("container %s of pod %s: %+v", s.Name, p.Name, s.State)
			}
		}
		n := own[p.Spec.NodeName]
		n.pods, n.tasks = n.pods+1, n.tasks+1+len(p.Spec.Containers) // and its sandbox
		if !p.Spec.HostNetwork {
			n.networks++
		}
		own[p.Spec.NodeName] = n
	}
	for _, node := range []string{"n1", "n2"} {
		out := c.on(node, "sh", "-c", "for d in /var/lib/kubelet/pods /run/netns /run/containerd/io.containerd.runtime.v2.task/k8s.io; do ls $d | wc -l; done")
		_, err := fmt.Sscan(out, &has.pods, &has.networks, &has.tasks)
		if n := own[node]; err != nil || has.pods > n.pods || has.networks > n.networks || has.tasks > n.tasks {
			return fmt.Errorf("%s has %+v, and pods have %+v (%w)", node, has, own[node], err)
		}
	}
	return nil
}

// sameTraces says what has been added, and then also what was there in its place.
func (c *cluster) sameTraces(before []string) error {
	c.t.Helper()
	after, err := c.traces()
	if err != nil {
		return err
	}
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

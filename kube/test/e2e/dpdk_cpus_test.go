// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// staticCPUs makes a node's kubelet give whole CPUs to containers, for the
// length of a test.
func (c *cluster) staticCPUs(node string) {
	c.t.Helper()
	const config, state = "/etc/kubernetes/kubelet.yaml", "/var/lib/kubelet/cpu_manager_state"
	restart := func(edit, policy string) {
		c.t.Helper()
		// It may just be starting again. (The kubelet refuses the state of another policy.)
		c.on(node, "sh", "-c", edit+" && rm -f "+state+" && { pkill -KILL -x kubelet || true; }")
		c.until("policy "+policy, func() error {
			now, err := c.run("", "on", node, "cat", state)
			if err == nil && !strings.Contains(now, `"policyName":"`+policy+`"`) {
				err = fmt.Errorf("state %q", now)
			}
			return err
		})
	}
	restart(fmt.Sprintf(`cp %s /tmp/before.yaml && printf 'cpuManagerPolicy: static\nkubeReserved: {cpu: 10m}\n' >>%[1]s`, config), "static")
	c.t.Cleanup(func() { restart("mv /tmp/before.yaml "+config, "none") })
}

// With the static CPU manager, the threads of a DPDK application are pinned to
// the container's own CPUs.
func TestDPDKThreadsHaveTheirOwnCPU(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestDPDKPods shows that ports work; run make test-kube")
	}
	c := newCluster(t)
	c.staticCPUs("n2")
	c.apply(testpmd)
	manifest := dpdkPod{"dst", "rxonly", false, runtimeDefault, "memory: 256Mi"}.manifest()
	c.apply(strings.NewReplacer("requests: {cpu: 50m}, limits: {cpu: 500m,", "limits: {cpu: 1,",
		"  restartPolicy:", "  nodeSelector: {kubernetes.io/hostname: n2}\n  restartPolicy:").Replace(manifest))
	c.ready("dst")
	status := c.in("exec", "dst", "--", "sed", "-n", "s/Cpus_allowed_list:\t//p", "/proc/1/status")
	cpu, arguments := strings.TrimSpace(status), strings.ReplaceAll(c.in("exec", "dst", "--", "cat", "/proc/1/cmdline"), "\x00", " ")
	if want := fmt.Sprintf(" --lcores 0@%s,1@%[1]s ", cpu); strings.ContainsAny(cpu, "-,") || !strings.Contains(arguments, want) {
		t.Errorf("on CPU %s: %s, want %q", cpu, arguments, want)
	}
}

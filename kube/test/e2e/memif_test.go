// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

/*
The chain of these tests, on one node; both pods run Debian's dpdk-testpmd with DPDK's own driver net_memif:

	pod src ── n3 ── pod dst
	(sends,          (receives,
	 connects)        listens)
*/
const memifChain = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - {name: src, ports: [{name: n3, face: dpdk}]}
  - {name: dst, ports: [{name: n3, face: dpdk}]}
  links: [{name: n3, ends: [src.n3, dst.n3], transport: memif, isolation: slice, requires: {latency: 1ms}}]
`

// memifPod is a restricted pod whose container starts again whenever it ends.
func memifPod(p dpdkPod, user int) string {
	return strings.NewReplacer("chain: testpmd", "chain: f1", "testpmd-"+p.name, "f1-"+p.name, "restartPolicy: Never", "restartPolicy: Always",
		"runAsUser: 1000", fmt.Sprintf("runAsUser: %d", user)).Replace(p.manifest())
}

// consumed is how many packets the other end has taken from a testpmd that runs, but for those in the
// ring. The counters of the receiving end stay 0 once its peer has been another one.
func (c *cluster) consumed(pod string) (n uint64, err error) {
	log, err := c.try("-n", c.namespace, "logs", pod, "--tail=100")
	all := regexp.MustCompile(`TX-packets: ([0-9]+)`).FindAllStringSubmatch(log, -1)
	if err != nil || len(all) == 0 {
		return 0, fmt.Errorf("%s counts nothing yet: %w", pod, err)
	}
	return strconv.ParseUint(all[len(all)-1][1], 10, 64)
}

// memifFlows waits until some packets of src, many times more than a ring holds, have been taken. Each
// start of its application counts from 0.
func (c *cluster) memifFlows() {
	c.t.Helper()
	var first uint64
	known := false
	took := c.until("packets", func() error {
		now, err := c.consumed("src")
		switch {
		case err != nil:
			return err
		case !known || now < first:
			first, known = now, true
		case now > first+10000:
			return nil
		}
		return fmt.Errorf("%d packets, %d at first", now, first)
	})
	c.t.Logf("packets after %v", took)
}

// meet starts both pods, with different users.
func (c *cluster) meet(hostUsers bool, seccomp, limits string) {
	c.t.Helper()
	c.apply(memifChain)
	c.apply(memifPod(dpdkPod{"src", "txonly", hostUsers, seccomp, limits}, 1001)) // it waits for the other
	c.apply(memifPod(dpdkPod{"dst", "rxonly", hostUsers, seccomp, limits}, 1002))
	c.ready("src", "dst")
	c.memifFlows()
}

// Unmodified DPDK applications in restricted pods pass packets by memif, and do so again after either
// has been killed.
func TestMemifPods(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestDPDKPods shows that dpdk ports work; run make test-kube")
	}
	for _, hostUsers := range []bool{true, false} {
		t.Run(fmt.Sprintf("hostUsers=%v", hostUsers), func(t *testing.T) {
			c := newCluster(t)
			before := c.settledTraces()
			c.meet(hostUsers, runtimeDefault, "memory: 256Mi")
			c.requirement("latency", metav1.ConditionUnknown, v1alpha1.ReasonNotMeasurable, "memif counts no packets")
			for _, p := range []string{"src", "dst"} {
				c.unprivileged(p)
				t.Logf("%s: %s", p, strings.ReplaceAll(c.in("exec", p, "--", "sh", "-c", "cat /proc/$(pidof dpdk-testpmd)/cmdline"), "\x00", " "))
			}
			c.onlyTheSocketIsShared()
			for _, p := range []string{"dst", "src"} {
				c.signal(p, "KILL", "dpdk-testpmd")
				c.restarted(p)
				c.memifFlows()
				t.Logf("after the kill of %s: src was started again %d times, dst %d times", p, c.restarts("src"), c.restarts("dst"))
			}
			// Also when the other pod is another one, or the broker.
			c.in("delete", "pod", "dst", "--now")
			c.apply(memifPod(dpdkPod{"dst", "rxonly", hostUsers, runtimeDefault, "memory: 256Mi"}, 1002))
			c.ready("dst")
			c.memifFlows()
			c.deleteDaemon("dray-broker", c.node("dst"))
			c.memifFlows()
			c.signal("src", "KILL", "dpdk-testpmd")
			c.memifFlows()
			c.in("delete", "chain", "f1")
			c.in("delete", "pods", "--all", "--now")
			c.until("nothing left", c.left)
			c.until("no traces", func() error { return c.sameTraces(before) })
		})
	}
}

// onlyTheSocketIsShared tries what the pods of a memif link must not be able to do.
func (c *cluster) onlyTheSocketIsShared() {
	c.t.Helper()
	// What a pod can write there is small, and no other container has it.
	const fill = `dd if=/dev/zero of=/run/dray/links/fill bs=1k count=10000 2>/dev/null; wc -c </run/dray/links/fill
i=0; while touch /run/dray/links/f$i 2>/dev/null && [ $i -lt 1000 ]; do i=$((i+1)); done; echo $i; rm -f /run/dray/links/f*`
	for _, p := range []string{"src", "dst"} {
		var bytes, files int
		out := c.in("exec", p, "--", "sh", "-c", fill)
		if n, err := fmt.Sscan(out, &bytes, &files); err != nil || n != 2 || bytes == 0 || bytes > 64<<10 || files == 0 || files > 64 {
			c.t.Errorf("%s wrote %q", p, out)
		}
		out, err := c.try("-n", c.namespace, "exec", p, "--", "sh", "-c", "touch /run/dray/ports/x || touch /run/dray/bin/x || touch /run/dray/lib/x || touch /run/dray/x")
		if err == nil {
			c.t.Errorf("%s writes to its node: %s", p, out)
		}
	}
	// The client has no name of the server's socket, and keeps no other client from it.
	out := c.in("exec", "src", "--", "sh", "-c", "ls -A /run/dray/links /run/dray/links/n3; rm /run/dray/links/n3/memif.sock; touch /run/dray/links/n3/memif.sock; ls -L /proc/$(pidof dpdk-testpmd)/fd/3/.. 2>&1 || true")
	if !slices.Contains(strings.Fields(out), "memif.sock") || !strings.Contains(out, "Not a directory") {
		c.t.Errorf("src sees %s", out)
	}
	if mode := c.in("exec", "dst", "--", "stat", "-c", "%F", "/run/dray/links/n3/memif.sock"); strings.TrimSpace(mode) != "socket" {
		c.t.Errorf("the socket of dst is a %s", mode)
	}
}

// DPDK applications with huge pages pass packets by memif.
func TestMemifPodsWithHugePages(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestDPDKPods shows that dpdk ports work; run make test-kube")
	}
	withHugePages(t, 128)
	c := newCluster(t)
	c.meet(false, forHugePages, "memory: 128Mi, hugepages-2Mi: 64Mi")
	for _, p := range []string{"src", "dst"} {
		if status := c.in("exec", p, "--", "sh", "-c", "cat /proc/$(pidof dpdk-testpmd)/status"); regexp.MustCompile(`HugetlbPages:\s+0 kB`).MatchString(status) {
			t.Errorf("%s uses no huge pages: %s", p, status)
		}
	}
}

// A memif link whose pods are on two nodes is refused with the reason.
func TestMemifPodsOnTwoNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: the planner's tests show the reason; run make test-kube")
	}
	c := newCluster(t)
	c.apply(memifChain)
	for node, p := range map[string]dpdkPod{"n1": {"src", "txonly", false, runtimeDefault, "memory: 256Mi"}, "n2": {"dst", "rxonly", false, runtimeDefault, "memory: 256Mi"}} {
		manifest := memifPod(p, 1001)
		from, to := strings.Index(manifest, "  affinity:"), strings.Index(manifest, "  resourceClaims:")
		c.apply(manifest[:from] + "  nodeSelector: {kubernetes.io/hostname: " + node + "}\n" + manifest[to:])
	}
	c.until("the reason", func() error {
		chain, err := c.chain()
		if err != nil {
			return err
		}
		const want = "its ends are on different nodes"
		got := condition(chain.Status.Conditions, v1alpha1.ConditionReady)
		if !strings.Contains(got.Message, want) || !strings.Contains(got.Message, "devices of memif") {
			return fmt.Errorf("%+v", got)
		}
		t.Log(got.Message)
		return nil
	})
	c.until("src says that it waits", func() error {
		log, err := c.try("-n", c.namespace, "logs", "src")
		if err != nil || !strings.Contains(log, "port n3 waits until the application of its other end, on this node, listens") {
			return fmt.Errorf("%s, %w", log, err)
		}
		return nil
	})
}

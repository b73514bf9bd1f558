// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

/*
The chain of these tests; both pods run Debian's dpdk-testpmd with DPDK's own driver net_virtio_user:

	pod src ── n3 ── dray-switch of its node (── VXLAN ── dray-switch of the other node) ── n3 ── pod dst
	(sends)                                                                                      (receives)
*/
const switchChain = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - {name: src, ports: [{name: n3, face: dpdk, mtu: 1400}]}
  - {name: dst, ports: [{name: n3, face: dpdk, mtu: 1400}]}
  links: [{name: n3, ends: [src.n3, dst.n3], transport: ovs-dpdk, requires: {latency: 10ms}}]
`

// switchPod is a restricted pod of that chain on a node.
func switchPod(p dpdkPod, node string) string {
	manifest := strings.Replace(memifPod(p, 1001), "--forward-mode", "--total-num-mbufs=16384, --forward-mode", 1)
	from, to := strings.Index(manifest, "  affinity:"), strings.Index(manifest, "  resourceClaims:")
	return manifest[:from] + "  nodeSelector: {kubernetes.io/hostname: " + node + "}\n" + manifest[to:]
}

// useSwitch installs dray-switch until the end of the test, and waits until the operator can plan with it.
func (c *cluster) useSwitch() {
	c.t.Helper()
	c.t.Cleanup(func() {
		c.kubectl("-n", "dray-system", "delete", "daemonset/dray-switch", "--ignore-not-found", "--timeout", patience.String())
	})
	c.kubectl("apply", "-k", "../../deploy/switch")
	c.until("a switch on each node", func() error {
		out, err := c.try("-n", "dray-system", "get", "daemonset/dray-switch", "-o", "jsonpath={.status.numberReady}")
		if err == nil && out != "2" {
			err = fmt.Errorf("%q are ready", out)
		}
		return err
	})
	c.until("both nodes offer the switch", func() error {
		for _, node := range []string{"n1", "n2"} {
			out, err := c.try("-n", "dray-system", "get", "configmap", "dray-inventory-"+node, "-o", "jsonpath={.data."+strings.ReplaceAll(v1alpha1.KeySwitch, ".", `\.`)+"}")
			if err != nil || out == "" {
				return fmt.Errorf("%s: %s, %w", node, out, err)
			}
		}
		return nil
	})
}

// received is how many packets a testpmd has received, as it last printed.
func (c *cluster) received(pod string) (n uint64, err error) {
	log, err := c.try("-n", c.namespace, "logs", pod, "--tail=100")
	all := regexp.MustCompile(`RX-packets: ([0-9]+)`).FindAllStringSubmatch(log, -1)
	if err != nil || len(all) == 0 {
		return 0, fmt.Errorf("%s counts nothing yet: %w", pod, err)
	}
	return strconv.ParseUint(all[len(all)-1][1], 10, 64)
}

// switchFlows waits until dst has received more packets than were under way when it was called.
func (c *cluster) switchFlows(when string) {
	c.t.Helper()
	var first uint64
	known := false
	took := c.until("packets "+when, func() error {
		now, err := c.received("dst")
		switch {
		case err != nil:
			return err
		case !known || now < first:
			first, known = now, true
		case now > first+20000:
			return nil
		}
		return fmt.Errorf("%d packets, %d at first", now, first)
	})
	c.t.Logf("packets %s after %v", when, took.Round(100*time.Millisecond))
}

// Unmodified DPDK applications in restricted pods have vhost-user ports of their node's switch. Neither
// is started again when the switch dies, nor when the other moves to another node and back.
func TestVhostUserPods(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: the tests of the switch's package run it with testpmd; run make test-kube")
	}
	c := newCluster(t)
	c.useSwitch()
	before := c.settledTraces()
	c.apply(switchChain)
	src := dpdkPod{"src", "txonly", false, runtimeDefault, "memory: 256Mi"}
	dst := dpdkPod{"dst", "rxonly", true, runtimeDefault, "memory: 256Mi"}
	c.apply(switchPod(src, "n1"))
	c.apply(switchPod(dst, "n1"))
	c.ready("src", "dst")
	c.switchFlows("on one node")
	c.awaitTransport("ovs-dpdk")
	c.requirement("latency", metav1.ConditionUnknown, v1alpha1.ReasonNotMeasurable, "carry no stamps")
	for _, p := range []string{"src", "dst"} {
		c.unprivileged(p)
	}
	for _, program := range []string{"ovs-vswitchd", "ovsdb-server", "dray-switch"} {
		c.on("n1", "pkill", "-KILL", "^"+program)
		c.switchFlows("after the death of " + program)
	}
	c.signal("dst", "KILL", "dpdk-testpmd")
	c.restarted("dst")
	c.switchFlows("after the death of dst")
	for _, node := range []string{"n2", "n1"} {
		c.in("delete", "pod", "dst", "--now")
		c.apply(switchPod(dst, node))
		c.ready("dst")
		c.switchFlows("with dst on " + node)
		c.awaitTransport(map[string]string{"n2": "ovs-dpdk-vxlan", "n1": "ovs-dpdk"}[node])
	}
	c.deleteDaemon("dray-switch", "n1")
	c.switchFlows("after the end of the switch's pod")
	if n := c.restarts("src"); n != 0 {
		t.Errorf("src was started again %d times", n)
	}
	c.in("delete", "chain", "f1")
	c.in("delete", "pods", "--all", "--now")
	c.until("nothing left", c.left)
	c.until("no traces", func() error { return c.sameTraces(before) })
}

// DPDK applications with huge pages have vhost-user ports, too.
func TestVhostUserPodsWithHugePages(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestDPDKPods shows that dpdk ports work; run make test-kube")
	}
	withHugePages(t, 128)
	c := newCluster(t)
	c.useSwitch()
	c.apply(switchChain)
	for name, mode := range map[string]string{"src": "txonly", "dst": "rxonly"} {
		c.apply(switchPod(dpdkPod{name, mode, false, forHugePages, "memory: 128Mi, hugepages-2Mi: 64Mi"}, "n1"))
	}
	c.ready("src", "dst")
	c.switchFlows("with huge pages")
}

// An active verification measures a link of the switch, on one node and between two. Between nodes nothing
// tells its latency: packets of ovs-dpdk carry no stamps.
func TestActiveVerificationOfVhostUser(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestAnActiveVerification shows that copies are measured; run make test-kube")
	}
	c := newCluster(t)
	c.useSwitch()
	c.apply(strings.Replace(switchChain, "latency: 10ms", "min_bitrate: 5Mbps, latency: 100ms, percentile: 75", 1))
	c.measuresSwitch("n1", "ovs-dpdk", map[string]string{"n3 min_bitrate": "met", "n3 latency": "met"})
	c.in("delete", "pod", "dst", "--now")
	c.measuresSwitch("n2", "ovs-dpdk-vxlan", map[string]string{"n3 min_bitrate": "met", "n3 latency": "not measurable"})
}

// measuresSwitch has src on n1 and dst on a node, and measures their link.
func (c *cluster) measuresSwitch(node, transport string, want map[string]string) {
	c.t.Helper()
	for function, node := range map[string]string{"src": "n1", "dst": node} {
		c.apply(pod{name: function, function: function, command: sleeps, node: node}.manifest())
	}
	c.ready("src", "dst")
	c.awaitTransport(transport)
	dir := filepath.Join(c.t.TempDir(), "run")
	out, code := c.plugin()("verify", "f1", "--active", "--profile", "quick", "--seed", "1", "--out", dir, "--json")
	if exit := exitFor(c.t, decided(c.t, out), want); code != exit {
		c.t.Errorf("%s: exit code %d, not %d", transport, code, exit)
	}
	records, err := os.ReadFile(filepath.Join(dir, "records.jsonl"))
	if err != nil || strings.Contains(string(records), `"error":`) {
		c.t.Errorf("%s: a trial failed: %v", transport, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drayage/dray/test/testenv"
)

/*
The chain of these tests, on one node; both pods run Debian's dpdk-testpmd:

	pod src ── n3 ── pod dst
	(sends)          (receives and counts)
*/
const testpmd = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: testpmd}
spec:
  functions:
  - {name: src, ports: [{name: n3, face: dpdk}]}
  - {name: dst, ports: [{name: n3, face: dpdk}]}
  links: [{name: n3, ends: [src.n3, dst.n3]}]
`

// dpdkPod is a restricted pod with testpmd.
type dpdkPod struct {
	name, mode      string
	hostUsers       bool
	seccomp, limits string
}

// The seccomp profiles of these pods.
const (
	runtimeDefault = "type: RuntimeDefault"
	forHugePages   = "type: Localhost, localhostProfile: drayage/dpdk.json"
)

func (p dpdkPod) manifest() string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {chain: testpmd}}
spec:
  hostUsers: %v
  restartPolicy: Never
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 5
  securityContext: {runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, seccompProfile: {%[5]s}}
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {labelSelector: {matchLabels: {chain: testpmd}}, topologyKey: kubernetes.io/hostname}
  resourceClaims: [{name: ports, resourceClaimTemplateName: testpmd-%[1]s}]
  containers:
  - name: c
    image: dray.local/testpmd:1
    imagePullPolicy: Never
    command: [/run/dray/bin/dray-eal, dpdk-testpmd, $(DRAY_EAL), --,
      --forward-mode=%[3]s, --auto-start, --no-flush-rx, --stats-period=1, --total-num-mbufs=4096]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    resources: {claims: [{name: ports}], requests: {cpu: 50m}, limits: {cpu: 500m, %[4]s}}
`, p.name, p.hostUsers, p.mode, p.limits, p.seccomp)
}

// forwards runs both pods for a while, and checks that what one sent the other received.
func (c *cluster) forwards(hostUsers bool, seccomp, limits string) {
	c.t.Helper()
	c.apply(testpmd)
	c.apply(dpdkPod{"dst", "rxonly", hostUsers, seccomp, limits}.manifest())
	c.apply(dpdkPod{"src", "txonly", hostUsers, seccomp, limits}.manifest())
	c.ready("dst", "src")
	huge := strings.Contains(limits, "hugepages")
	for _, p := range []string{"dst", "src"} {
		if uses := c.unprivileged(p); uses != huge {
			c.t.Errorf("%s uses huge pages: %v", p, uses)
		}
		c.t.Logf("%s: %s", p, strings.ReplaceAll(c.in("exec", p, "--", "cat", "/proc/1/cmdline"), "\x00", " "))
	}
	c.getsMore("dst", "dst.n3", 10_000)
	sent := c.total("src", "TX")
	c.until("every packet received", func() error { // testpmd ends without a look at the packets that wait for it
		if n, err := c.received("dst"); err != nil || n < sent {
			return fmt.Errorf("%d of %d packets, %v", n, sent, err)
		}
		return nil
	})
	received := c.total("dst", "RX")
	if sent == 0 || received != sent {
		c.t.Errorf("sent %d, received %d", sent, received)
	}
	c.t.Logf("%d packets, 0 lost", received)
}

// unprivileged checks that a pod has no capability and a seccomp profile, and
// reports whether its application has huge pages.
func (c *cluster) unprivileged(pod string) bool {
	c.t.Helper()
	status := c.in("exec", pod, "--", "cat", "/proc/1/status")
	for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, want) {
			c.t.Errorf("%s: no %q in %s", pod, want, status)
		}
	}
	return !regexp.MustCompile(`HugetlbPages:\s+0 kB`).MatchString(status)
}

// total ends testpmd and returns what it counted.
func (c *cluster) total(pod, direction string) uint64 {
	c.t.Helper()
	c.terminate(pod)
	c.until(pod+" ended", func() error {
		var p corev1.Pod
		if err := c.get("pod", pod, &p); err != nil || p.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("%s, %w", p.Status.Phase, err)
		}
		return nil
	})
	log := c.in("logs", pod)
	_, sum, found := strings.Cut(log, "Accumulated forward statistics for all ports")
	match := regexp.MustCompile(direction + `-packets: ([0-9]+)`).FindStringSubmatch(sum)
	if !found || match == nil {
		c.t.Fatalf("%s printed %s", pod, log)
	}
	n, err := strconv.ParseUint(match[1], 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// Unmodified DPDK applications pass packets between restricted pods.
func TestDPDKPods(t *testing.T) {
	for _, hostUsers := range []bool{true, false} {
		t.Run(fmt.Sprintf("hostUsers=%v", hostUsers), func(t *testing.T) {
			newCluster(t).forwards(hostUsers, runtimeDefault, "memory: 256Mi")
		})
	}
}

/*
A DPDK application with two ports between native ones:

	pod cu-up ── a ── pod fwd ── b ── pod du
	(sends)          (testpmd)       (receives, counts, and sends back)
*/
const between = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - {name: cu-up, ports: [{name: f1u, face: native, ip: 10.38.0.1/24}]}
  - {name: fwd, ports: [{name: p0, face: dpdk}, {name: p1, face: dpdk}]}
  - {name: du, ports: [{name: f1u, face: native, ip: 10.38.0.2/24}]}
  links:
  - {name: a, ends: [cu-up.f1u, fwd.p0]}
  - {name: b, ends: [fwd.p1, du.f1u]}
`

// A DPDK application forwards between native ports, and does so again after its
// container was killed.
func TestADPDKPodIsRestarted(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestDPDKPods shows that ports work; run make test-kube")
	}
	c := newCluster(t)
	c.apply(between)
	c.apply(pod{name: "du", function: "du", command: receives}.manifest())
	fwd := dpdkPod{"fwd", "io", false, runtimeDefault, "memory: 256Mi"}.manifest()
	c.apply(strings.NewReplacer("chain: testpmd", "chain: f1", "testpmd-fwd", "f1-fwd", "restartPolicy: Never", "restartPolicy: Always").Replace(fwd))
	c.apply(pod{name: "cu-up", function: "cu-up", command: sends}.manifest())
	c.ready("du", "fwd", "cu-up")
	c.flows()
	c.until("killed", func() error {
		_, err := c.run("", "on", c.node("fwd"), "pkill", "-KILL", "-x", "dpdk-testpmd")
		return err
	})
	c.until("restarted", func() error {
		var p corev1.Pod
		if err := c.get("pod", "fwd", &p); err != nil || p.Status.ContainerStatuses[0].RestartCount == 0 {
			return fmt.Errorf("%+v, %w", p.Status.ContainerStatuses, err)
		}
		return nil
	})
	c.flows()
}

// A container with another DPDK than the node's driver says so and ends.
func TestAnotherDPDKIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestDPDKPods shows that ports work; run make test-kube")
	}
	c := newCluster(t)
	c.apply(testpmd)
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: dpdk}, data: {librte_ethdev.so.25: ""}}`)
	manifest := dpdkPod{"src", "io", false, runtimeDefault, "memory: 256Mi"}.manifest()
	c.apply(strings.NewReplacer("dray.local/testpmd:1", image, "dray-eal, dpdk-testpmd,", "dray-eal, sh,",
		"  containers:\n", "  volumes: [{name: dpdk, configMap: {name: dpdk}}]\n  containers:\n",
		"    resources:", "    volumeMounts: [{name: dpdk, mountPath: /usr/local/lib/dpdk}]\n    resources:").Replace(manifest))
	c.until("refused", func() error {
		log, err := c.try("-n", c.namespace, "logs", "src")
		if err != nil || !strings.Contains(log, "sh uses DPDK 24.11, and this node has the driver net_dray only for DPDK 22.11") {
			return fmt.Errorf("%s, %w", log, err)
		}
		return nil
	})
}

// DPDK applications pass packets with huge pages, which the kernel counts for each process.
func TestDPDKPodsWithHugePages(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestDPDKPods shows that ports work; run make test-kube")
	}
	withHugePages(t, 128)
	for _, hostUsers := range []bool{true, false} {
		t.Run(fmt.Sprintf("hostUsers=%v", hostUsers), func(t *testing.T) {
			c := newCluster(t)
			c.forwards(hostUsers, forHugePages, "memory: 128Mi, hugepages-2Mi: 64Mi")
		})
	}
	t.Run("default profile", func(t *testing.T) {
		c := newCluster(t)
		c.apply(testpmd)
		c.apply(dpdkPod{"dst", "rxonly", true, runtimeDefault, "memory: 128Mi, hugepages-2Mi: 64Mi"}.manifest())
		c.until("a warning", func() error {
			log, err := c.try("-n", c.namespace, "logs", "dst")
			if err != nil || !strings.Contains(log, "set seccompProfile: {"+forHugePages+"}") {
				return fmt.Errorf("%s, %w", log, err)
			}
			return nil
		})
	})
}

// withHugePages gives the machine huge pages of 2 MiB for the length of a test.
// A kubelet reads their number when it starts, so both are started again.
func withHugePages(t *testing.T, pages int) {
	t.Helper()
	c := newCluster(t)
	restart := func() {
		for _, node := range []string{"n1", "n2"} {
			c.on(node, "sh", "-c", "pkill -KILL -x kubelet || true") // it may just be starting again
		}
	}
	t.Cleanup(restart) // after the pages are given back
	testenv.HugePages(t, pages)
	restart()
	for _, node := range []string{"n1", "n2"} {
		c.until("huge pages of "+node, func() error {
			text, err := c.try("get", "node", node, "-o", `jsonpath={.status.allocatable.hugepages-2Mi}`)
			if err != nil {
				return err
			}
			has, err := resource.ParseQuantity(text)
			if err != nil || has.Value() < int64(pages)<<21 {
				return fmt.Errorf("%s, %w", text, err)
			}
			return nil
		})
	}
}

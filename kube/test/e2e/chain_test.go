// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

/*
The chain of these tests, on one node:

	pod cu-up ── f1u ── pod du
	(sends)             (receives, counts, and sends back)
*/
const f1 = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - {name: cu-up, ports: [{name: f1u, face: native, ip: 10.38.0.1/24, mtu: 1600}]}
  - {name: du, ports: [{name: f1u, face: native, ip: 10.38.0.2/24, mtu: 1600}]}
  links:
  - name: f1u
    ends: [cu-up.f1u, du.f1u]
    requires: {latency: 100ms, percentile: 90}
`

// image has draygen and busybox.
const image = "dray.local/dray-test:1"

// pod is a pod of a function of chain f1.
type pod struct {
	name, function string
	command        string // of a shell
	hostUsers      bool
	user           int
	template       string // if empty, that of the function
}

// manifest is a pod that PodSecurity "restricted" admits.
func (p pod) manifest() string {
	if p.user == 0 {
		p.user = 1000
	}
	if p.template == "" {
		p.template = "f1-" + p.function
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {chain: f1}}
spec:
  hostUsers: %v
  restartPolicy: Never
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 5
  securityContext: {runAsNonRoot: true, runAsUser: %d, runAsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {labelSelector: {matchLabels: {chain: f1}}, topologyKey: kubernetes.io/hostname}
  resourceClaims: [{name: ports, resourceClaimTemplateName: %s}]
  containers:
  - name: c
    image: %s
    imagePullPolicy: Never
    command: [sh, -c, %q]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    resources: {claims: [{name: ports}]}
`, p.name, p.hostUsers, p.user, p.template, image, p.command)
}

const (
	sends    = "exec draygen ping --port dray:f1u --rate 1000pps --size 200 --check --peer-timeout 180s"
	receives = "exec draygen sink --port dray:f1u --reflect --check"
	sleeps   = "exec sleep 1000000"
)

// traffic makes the chain and two pods with traffic between them.
func (c *cluster) traffic(hostUsers bool) {
	c.t.Helper()
	c.apply(f1)
	c.apply(pod{name: "du", function: "du", command: receives, hostUsers: hostUsers}.manifest())
	c.apply(pod{name: "cu-up", function: "cu-up", command: sends, hostUsers: hostUsers}.manifest())
	c.ready("du", "cu-up")
	c.flows()
}

// received is how many packets pod du has got, as the broker of its node knows.
func (c *cluster) received() (uint64, error) {
	out, err := c.try("get", "--raw", "/api/v1/namespaces/dray-system/pods/"+c.daemon("dray-node", c.node("du"))+":9464/proxy/metrics")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "dray_port_received_packets_total") && strings.Contains(line, c.namespace+"/f1") && strings.Contains(line, `to="du.f1u"`) {
			var n float64
			_, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n)
			return uint64(n), err
		}
	}
	return 0, fmt.Errorf("no link of %s in the metrics", c.namespace)
}

// flows waits until some hundred packets more have arrived.
func (c *cluster) flows() {
	c.t.Helper()
	var first uint64
	c.until("traffic", func() error {
		n, err := c.received()
		if err == nil && first == 0 {
			first = n
		}
		if err != nil || n < first+500 {
			return fmt.Errorf("%d packets, %d before: %w", n, first, err)
		}
		return nil
	})
}

// result is what a pod's draygen printed at its end.
type result struct {
	Event                                    string
	Sent, Received, Lost, Unsent, Duplicates int64
	Reordered, Corrupt                       int64
}

// finish ends the sender, then the receiver, and returns what they counted.
func (c *cluster) finish() (sender, receiver result) {
	c.t.Helper()
	return c.end("cu-up"), c.end("du")
}

func (c *cluster) end(pod string) result {
	c.t.Helper()
	c.in("exec", pod, "--", "kill", "-TERM", "1")
	c.until(pod+" ended", func() error {
		var p corev1.Pod
		if err := c.get("pod", pod, &p); err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("phase %s", p.Status.Phase)
		}
		return nil
	})
	lines := strings.Split(strings.TrimSpace(c.in("logs", pod)), "\n")
	var r result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		c.t.Fatalf("%s printed %q: %v", pod, lines, err)
	}
	return r
}

// lossless checks that every packet of a run arrived once and whole. What the
// sender could not send because its CPU was busy elsewhere was never on the link.
func (c *cluster) lossless() {
	c.t.Helper()
	sender, receiver := c.finish()
	if receiver.Received == 0 || receiver.Received != sender.Sent || receiver.Lost+receiver.Corrupt+receiver.Duplicates+receiver.Reordered != 0 {
		c.t.Errorf("sent %+v, received %+v", sender, receiver)
	}
	c.t.Logf("%d packets, 0 lost", receiver.Received)
}

// node is the node of a pod.
func (c *cluster) node(pod string) string {
	c.t.Helper()
	return c.in("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
}

// daemon is the newest running pod of one of our daemons on a node.
func (c *cluster) daemon(name, node string) string {
	c.t.Helper()
	var found string
	c.until(name+" on "+node, func() error {
		out := c.kubectl("get", "pods", "-n", "dray-system", "-l", "app.kubernetes.io/name="+name, "--field-selector", "spec.nodeName="+node+",status.phase=Running",
			"--sort-by=.metadata.creationTimestamp", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)
		names := strings.Fields(out)
		if len(names) == 0 {
			return fmt.Errorf("none runs")
		}
		found = names[len(names)-1]
		return nil
	})
	return found
}

// claim is the claim of a pod.
func (c *cluster) claim(pod string) (*resourcev1.ResourceClaim, error) {
	var p corev1.Pod
	if err := c.get("pod", pod, &p); err != nil {
		return nil, err
	}
	if len(p.Status.ResourceClaimStatuses) == 0 || p.Status.ResourceClaimStatuses[0].ResourceClaimName == nil {
		return nil, fmt.Errorf("pod %s has no claim yet", pod)
	}
	var claim resourcev1.ResourceClaim
	return &claim, c.get("resourceclaim", *p.Status.ResourceClaimStatuses[0].ResourceClaimName, &claim)
}

// chain is the chain f1.
func (c *cluster) chain() (*v1alpha1.Chain, error) {
	var chain v1alpha1.Chain
	return &chain, c.get("chain", "f1", &chain)
}

// left lists what nodes keep of this namespace's chains, and of claims that nobody has.
func (c *cluster) left() error {
	for _, node := range []string{"n1", "n2"} {
		for what, list := range map[string]string{
			"claims":      "ls /run/dray/k8s/claims",
			"CDI devices": "ls /var/run/cdi | grep ports.drayage.io || true",
			"links":       "ls /run/dray/k8s/broker/links",
		} {
			if out := c.on(node, "sh", "-c", list); strings.TrimSpace(out) != "" {
				return fmt.Errorf("%s on %s: %s", what, node, strings.Fields(out))
			}
		}
	}
	return nil
}

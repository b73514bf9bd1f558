// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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
	node           string // if empty, that of the chain's other pod
	restart        string // restartPolicy; if empty, Never
	anywhere       bool   // it names no node and no pod
}

const together = `
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {labelSelector: {matchLabels: {chain: f1}}, topologyKey: kubernetes.io/hostname}`

// affinity is where the pod may be.
func (p pod) affinity() string {
	if p.anywhere {
		return " {}"
	}
	if p.node == "" {
		return together
	}
	return fmt.Sprintf(`
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]`, p.node)
}

// manifest is a pod that PodSecurity "restricted" admits. Without a request for CPU, it would get next to none
// while the daemons of its node are busy.
func (p pod) manifest() string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {chain: f1}}
spec:
  hostUsers: %v
  restartPolicy: %s
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: %d, runAsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
  affinity:%s
  resourceClaims: [{name: ports, resourceClaimTemplateName: %s}]
  containers:
  - name: c
    image: %s
    imagePullPolicy: Never
    command: [sh, -c, %q]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    resources: {claims: [{name: ports}], requests: {cpu: 50m}}
`, p.name, p.hostUsers, cmp.Or(p.restart, "Never"), cmp.Or(p.user, 1000), p.affinity(), cmp.Or(p.template, "f1-"+p.function), image, p.command)
}

const (
	sends    = "exec draygen ping --port dray:f1u --rate 1000pps --size 200 --check --peer-timeout 180s"
	receives = "exec draygen sink --port dray:f1u --reflect --check --interval 1s"
	sleeps   = "exec sleep 1000000"
	// sendsLater starts to send at the signal SIGUSR1.
	sendsLater = "trap '" + sends + "' USR1; while :; do sleep 0.2; done"
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

// trafficAcross does the same from node n1 to n2. The sender begins when both nodes serve
// the link, and the receiver has its port: what one sends before the other receives is lost.
func (c *cluster) trafficAcross(chain string, hostUsers bool) {
	c.t.Helper()
	c.awaitNetwork()
	c.apply(chain)
	c.apply(pod{name: "du", function: "du", command: receives, hostUsers: hostUsers, node: "n2"}.manifest())
	c.apply(pod{name: "cu-up", function: "cu-up", command: sendsLater, hostUsers: hostUsers, node: "n1"}.manifest())
	c.ready("du", "cu-up")
	c.awaitTransport("vxlan")
	c.receiving("du")
	c.in("exec", "cu-up", "--", "kill", "-USR1", "1")
	c.flows()
}

// receiving waits until draygen in a pod misses no packet any more. Its container may run for a while before.
func (c *cluster) receiving(pod string) {
	c.t.Helper()
	c.until(pod+" receives", func() error {
		log, err := c.try("-n", c.namespace, "logs", pod)
		if err == nil && !strings.Contains(log, `"event":"ready"`) {
			err = fmt.Errorf("%q", log)
		}
		return err
	})
}

// awaitNetwork waits until each node offers links to others: a pod made before that has
// its ports on one node for good.
func (c *cluster) awaitNetwork() {
	c.t.Helper()
	c.until("links to other nodes on offer", func() error {
		out, err := c.try("-n", "dray-system", "get", "configmaps", "-l", "drayage.io/inventory=true", "-o", `jsonpath={range .items[*]}{.data.network\.json}{"\n"}{end}`)
		if err == nil && strings.Count(out, `"mtu"`) != 2 {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
}

// metrics are those of dray-node. A request that goes to the address that its pod had before a power cut would
// hang for a minute.
func (c *cluster) metrics(node string) (string, error) {
	return c.try("get", "--request-timeout=5s", "--raw", "/api/v1/namespaces/dray-system/pods/"+c.daemon("dray-node", node)+":9464/proxy/metrics")
}

// metricsOf are the metrics of a pod's node.
func (c *cluster) metricsOf(pod string) (string, error) {
	var p corev1.Pod
	if err := c.get("pod", pod, &p); err != nil {
		return "", err
	}
	return c.metrics(p.Spec.NodeName)
}

// receivedBy is how many packets a port of a pod has got, as the broker of its node knows.
func (c *cluster) receivedBy(pod, port string) (uint64, error) {
	out, err := c.metricsOf(pod)
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "dray_port_received_packets_total") && strings.Contains(line, `namespace="`+c.namespace+`"`) && strings.Contains(line, `to="`+port+`"`) {
			var n float64
			_, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n)
			return uint64(n), err
		}
	}
	return 0, fmt.Errorf("no link of %s in the metrics", c.namespace)
}

// flows waits until some hundred packets more have arrived.
func (c *cluster) flows() { c.t.Helper(); c.flowsTo("du", "du.f1u") }

// flowsTo waits until some hundred packets more have arrived at a port of a pod.
func (c *cluster) flowsTo(pod, port string) { c.t.Helper(); c.getsMore(pod, port, 500) }

// getsMore waits until so many packets more have arrived at a port of a pod.
func (c *cluster) getsMore(pod, port string, more uint64) {
	c.t.Helper()
	var first uint64
	c.until("traffic to "+port, func() error {
		n, err := c.receivedBy(pod, port)
		if err == nil && first == 0 {
			first = n
		}
		if err != nil || n < first+more {
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
	sender = c.end("cu-up")
	c.taken(sender.Sent)
	return sender, c.end("du")
}

// taken waits until du has taken what has arrived: all that was sent, or else nothing more. A receiver that has
// waited for its CPU may end without a look at the packets that wait for it.
func (c *cluster) taken(sent int64) {
	c.t.Helper()
	first := -1
	c.until("every packet taken", func() error {
		all, err := c.intervals("du")
		if err != nil {
			return err
		}
		if first < 0 {
			first = len(all)
		}
		sum, last := int64(0), int64(-1)
		for _, r := range all {
			sum, last = sum+r.Received, r.Received
		}
		if sum < sent && (len(all) < first+2 || last != 0) {
			return fmt.Errorf("%d of %d packets, %d in the last of %d intervals", sum, sent, last, len(all))
		}
		return nil
	})
}

// intervals are what a pod's draygen has printed of each second.
func (c *cluster) intervals(pod string) (all []result, err error) {
	out, err := c.try("-n", c.namespace, "logs", pod)
	for _, line := range strings.Split(out, "\n") {
		var r result
		if json.Unmarshal([]byte(line), &r) == nil && r.Event == "interval" {
			all = append(all, r)
		}
	}
	return all, err
}

// terminate asks the first process of a container to end. That can also end the command that
// asks, before it has succeeded: the caller waits for what follows.
func (c *cluster) terminate(pod string, container ...string) {
	_, _ = c.try(slices.Concat([]string{"-n", c.namespace, "exec", pod}, container, []string{"--", "kill", "-TERM", "1"})...)
}

func (c *cluster) end(pod string) result {
	c.t.Helper()
	c.terminate(pod)
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
	return c.printed(pod)
}

// printed is the result that a pod's draygen printed; args are more arguments of kubectl logs.
func (c *cluster) printed(pod string, args ...string) (r result) {
	c.t.Helper()
	lines := strings.Split(strings.TrimSpace(c.in(append([]string{"logs", pod}, args...)...)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil || r.Event != "result" {
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
		out, err := c.try("get", "pods", "-n", "dray-system", "-l", "app.kubernetes.io/name="+name, "--field-selector", "spec.nodeName="+node+",status.phase=Running",
			"--sort-by=.metadata.creationTimestamp", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)
		names := strings.Fields(out)
		if len(names) == 0 {
			return fmt.Errorf("none runs: %v", err)
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

// halves are the links to other nodes that a node has.
func (c *cluster) halves(node string) (names []string) {
	c.t.Helper()
	c.until("list of links to other nodes", func() error {
		out, err := c.try("-n", "dray-system", "exec", c.daemon("dray-net", node), "--", "/dray-net", "list")
		names = strings.Fields(out)
		return err
	})
	return names
}

// left is what nodes keep of any chain, and which claims of this namespace exist.
func (c *cluster) left() error {
	for _, node := range []string{"n1", "n2"} {
		for what, list := range map[string]string{
			"claims":      "ls /run/dray/k8s/claims",
			"CDI devices": "ls /var/run/cdi | grep ports.drayage.io || true",
			"links":       "ls /run/dray/k8s/broker/links",
		} {
			out, err := c.run("", "on", node, "sh", "-c", list)
			if err != nil || strings.TrimSpace(out) != "" {
				return fmt.Errorf("%s on %s: %s (%v)", what, node, strings.Fields(out), err)
			}
		}
		if halves := c.halves(node); len(halves) > 0 {
			return fmt.Errorf("halves of links on %s: %s", node, halves)
		}
		kept, err := c.try("-n", "dray-system", "exec", c.daemon("dray-net", node), "--", "/dray-net", "list-kept")
		if err != nil || kept != "" {
			return fmt.Errorf("the keeper of %s has %s (%v)", node, strings.Fields(kept), err)
		}
	}
	return c.claims()
}

// claims says which claims the namespace has.
func (c *cluster) claims() error {
	claims, err := c.try("get", "resourceclaims", "-n", c.namespace, "-o", "name")
	if err != nil || claims != "" {
		return fmt.Errorf("claims: %s (%v)", claims, err)
	}
	return nil
}

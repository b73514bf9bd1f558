// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A link between two nodes carries packets, no daemon's death loses one, and nothing is
// left of it.
func TestALinkBetweenNodes(t *testing.T) {
	for _, hostUsers := range []bool{true, false} {
		t.Run(fmt.Sprintf("hostUsers=%v", hostUsers), func(t *testing.T) {
			c := newCluster(t)
			c.trafficAcross(f1, hostUsers)
			t.Logf("kubectl get chains:\n%s", c.in("get", "chains", "-o", "wide"))
			c.confined()
			if !hostUsers {
				c.daemonsDie()
			}
			for _, node := range []string{"n1", "n2"} {
				if halves := c.halves(node); len(halves) != 2 {
					t.Errorf("%s has %s", node, halves)
				}
			}
			c.lossless()
			c.in("delete", "pods", "--all")
			c.until("clean", c.left)
		})
	}
}

// daemonsDie kills or replaces each daemon of both nodes in turn, under traffic.
func (c *cluster) daemonsDie() {
	c.t.Helper()
	for _, program := range []string{"/dray-net", "/dray-net keep", "/dray-broker", "/dray-node"} {
		for _, node := range []string{"n1", "n2"} {
			c.killProgram(node, program)
			c.flows()
			c.awaitKeeper(node)
		}
		c.t.Log(program, "killed on both nodes")
	}
	for _, name := range []string{"dray-net", "dray-broker"} {
		c.deleteDaemon(name, "n1")
		c.flows()
		c.awaitKeeper("n1")
		c.t.Log("pod of", name, "deleted")
	}
}

// awaitKeeper waits until dray-net has the node's half, with its number, and its keeper holds it. If both are lost
// at the same time, links between nodes are rebuilt, and packets are lost.
func (c *cluster) awaitKeeper(node string) {
	c.t.Helper()
	c.until("a whole keeper on "+node, func() error {
		for list, words := range map[string]int{"list": 2, "list-kept": 1} {
			out, err := c.try("-n", "dray-system", "exec", c.daemon("dray-net", node), "--", "/dray-net", list)
			if err != nil || len(strings.Fields(out)) != words {
				return fmt.Errorf("%s: %q, %w", list, out, err)
			}
		}
		return nil
	})
}

// awaitTransport waits until the chain's link is up with that transport.
func (c *cluster) awaitTransport(want string) {
	c.t.Helper()
	c.until("the link is of "+want, func() error {
		chain, err := c.chain()
		if err != nil {
			return err
		}
		if len(chain.Status.Links) != 1 || chain.Status.Links[0].Transport != want || chain.Status.Ready != "1/1" {
			return fmt.Errorf("%+v", chain.Status)
		}
		return nil
	})
}

// A node is drained: the pod comes up on the other one, and later back. The pod that
// stays is not restarted, its link moves from shared memory to a tunnel and back, and
// the ports keep their addresses.
func TestADrainedPodKeepsItsLink(t *testing.T) {
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(f1)
	t.Cleanup(func() { c.kubectl("uncordon", "n1", "n2") })
	c.kubectl("cordon", "n2")
	c.apply(deployment(pod{name: "du", function: "du", command: receives, node: "n1, n2"}))
	c.apply(pod{name: "cu-up", function: "cu-up", command: sends, node: "n1"}.manifest())
	c.ready("cu-up")
	c.awaitTransport("shm")
	addresses := c.portAddresses()
	for _, move := range []struct{ from, to, transport string }{{"n1", "n2", "vxlan"}, {"n2", "n1", "shm"}} {
		c.kubectl("uncordon", move.to)
		c.kubectl("drain", move.from, "--pod-selector=app=du", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout", patience.String())
		c.awaitTransport(move.transport)
		if got := c.portAddresses(); got != addresses {
			t.Errorf("on %s the ports have %s, not %s", move.to, got, addresses)
		}
		c.flowsTo("cu-up", "cu-up.f1u")
	}
	var p corev1.Pod
	if err := c.get("pod", "cu-up", &p); err != nil || p.Status.ContainerStatuses[0].RestartCount != 0 || p.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod that stayed: %+v, %v", p.Status, err)
	}
	sent := c.end("cu-up")
	if sent.Received == 0 {
		t.Errorf("no packet came back: %+v", sent)
	}
	t.Logf("two moves: %+v; without an answer for %v in all", sent, time.Duration(sent.Unsent+sent.Lost)*time.Millisecond)
}

// portAddresses are the addresses of the chain's ports, as the claims of its pods have them.
func (c *cluster) portAddresses() string {
	c.t.Helper()
	var text string
	c.until("addresses of both ports", func() error {
		out, err := c.try("-n", c.namespace, "get", "resourceclaims", "-o", `jsonpath={range .items[?(@.status.reservedFor)]}{.metadata.labels.drayage\.io/function}={.status.devices[0].networkData.hardwareAddress}={.status.devices[0].networkData.ips[0]}{"\n"}{end}`)
		lines := strings.Fields(out)
		if len(lines) != 2 || strings.Contains(out, "==") {
			return fmt.Errorf("%q: %v", out, err)
		}
		text = strings.Join(lines, " ")
		return nil
	})
	return text
}

// deployment is one replica of a pod.
func deployment(p pod) string {
	_, spec, _ := strings.Cut(p.manifest(), "\nspec:\n")
	spec = strings.Replace(spec, "restartPolicy: Never", "restartPolicy: Always", 1)
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, chain: f1}}
    spec:
%[2]s`, p.name, "    "+strings.ReplaceAll(strings.TrimRight(spec, "\n"), "\n", "\n    "))
}

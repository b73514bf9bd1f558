// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// f1Interfaces is chain f1 with network interfaces.
var f1Interfaces = strings.ReplaceAll(required("latency: 100ms, percentile: 90, packet_loss_ratio: 0.01"), "face: native", "face: netdev")

const (
	sendsUDP    = "exec draygen ping --port udp:10.38.0.1:0 --to 10.38.0.2:7000 --rate 1000pps --size 200 --check --peer-timeout 180s"
	receivesUDP = "exec draygen sink --port udp:10.38.0.2:7000 --reflect --check --interval 1s"
	// sendsUDPLater starts to send at the signal SIGUSR1.
	sendsUDPLater = "trap '" + sendsUDP + "' USR1; while :; do sleep 0.2; done"
)

// Two restricted pods have interfaces, which stay while containers and daemons die; and
// when one pod moves to the other node, and back, the other one keeps its own.
func TestInterfacesInPods(t *testing.T) {
	for _, hostUsers := range []bool{true, false} {
		t.Run(fmt.Sprintf("hostUsers=%v", hostUsers), func(t *testing.T) {
			if testing.Short() && hostUsers {
				t.Skip("the other case has all of it, and users of its own")
			}
			c := newCluster(t)
			c.awaitNetwork()
			c.apply(f1Interfaces)
			c.apply(pod{name: "du", function: "du", command: receivesUDP, hostUsers: hostUsers, restart: "OnFailure", node: "n1"}.manifest())
			c.apply(pod{name: "cu-up", function: "cu-up", command: sendsUDPLater, hostUsers: hostUsers, node: "n1"}.manifest())
			c.ready("du", "cu-up")
			c.awaitTransport("bridge")
			c.restrictedInterface("cu-up", "10.38.0.1/24")
			du := c.restrictedInterface("du", "10.38.0.2/24")
			c.killProgram("n1", "draygen sink")
			c.restarted("du")
			c.same("du", "its container started again", du)

			c.receiving("du")
			c.in("exec", "cu-up", "--", "kill", "-USR1", "1")
			c.arrives("du")
			c.interfacesMeet()
			if !testing.Short() {
				c.daemonsOfInterfacesDie("n1")
				c.same("du", "the daemons died", du)
			}
			c.lossless()
			c.in("delete", "pods", "--all")

			c.moves(hostUsers, receivesUDP)
			c.in("delete", "pods", "--all")
			c.until("clean", c.left)
		})
	}
}

// A pod with an interface keeps it while the other pod of the link, with a native port, moves to the other
// node and back.
func TestAMixedLinkCrossesNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestEveryPairOfFaces shows what a node makes for each pair; run make test-kube")
	}
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(strings.Replace(f1Interfaces, "{name: du, ports: [{name: f1u, face: netdev", "{name: du, ports: [{name: f1u, face: native", 1))
	c.moves(true, receives)
	c.in("delete", "pods", "--all")
	c.until("clean", c.left)
}

// interfacesMeet waits until the link's requirements are met, and its traffic is shown.
func (c *cluster) interfacesMeet() {
	c.t.Helper()
	c.requirement("latency", metav1.ConditionTrue, v1alpha1.ReasonMet, "one-way latency at p90")
	c.requirement("packet_loss_ratio", metav1.ConditionTrue, v1alpha1.ReasonMet, "measured: 0 (0 of ")
	if out, code := c.plugin()("top", "f1", "--samples", "1"); code != 0 || !strings.Contains(out, "netdev active") || !strings.Contains(out, "pps") {
		c.t.Errorf("top: exit code %d", code)
	}
}

// daemonsOfInterfacesDie kills each daemon of a node that has to do with interfaces.
func (c *cluster) daemonsOfInterfacesDie(node string) {
	c.t.Helper()
	for _, program := range []string{"/dray-net", "/dray-net keep", "/dray-node", "containerd"} {
		healed := c.killed(program, node)
		c.until(program+" is back", healed)
		c.arrives("du")
		c.awaitKeeper(node)
		c.t.Log(program, "killed")
	}
	c.deleteDaemon("dray-net", node)
	c.awaitKeeper(node)
	c.arrives("du")
}

// moves moves the pod du, with that command, to the other node and back, under traffic to its port.
func (c *cluster) moves(hostUsers bool, command string) {
	c.t.Helper()
	at := func(node string) {
		c.apply(pod{name: "du", function: "du", command: command, hostUsers: hostUsers, node: node}.manifest())
	}
	at("n1")
	c.apply(pod{name: "cu-up", function: "cu-up", command: sendsUDP, hostUsers: hostUsers, node: "n1"}.manifest())
	c.ready("du", "cu-up")
	c.arrives("du")
	before := c.restrictedInterface("cu-up", "10.38.0.1/24")
	for _, move := range []struct{ node, transport string }{{"n2", "vxlan"}, {"n1", "bridge"}} {
		c.in("delete", "pod", "du")
		at(move.node)
		c.ready("du")
		c.awaitTransport(move.transport)
		c.arrives("du")
		if command == receivesUDP {
			c.restrictedInterface("du", "10.38.0.2/24")
		}
		c.same("cu-up", "the other pod moved to "+move.node, before)
		if move.transport == "vxlan" {
			c.interfacesMeet()
		}
	}
}

// restrictedInterface checks the interface of a pod without any capability against its
// claim, and returns what identifies it.
func (c *cluster) restrictedInterface(pod, ip string) string {
	c.t.Helper()
	if status := c.in("exec", pod, "--", "cat", "/proc/self/status"); !strings.Contains(status, "CapEff:\t0000000000000000") {
		c.t.Errorf("%s has capabilities: %s", pod, status)
	}
	seen := c.interfaceOf(pod)
	if len(seen) != 4 || seen[2] != "1600" || seen[3] != "up" {
		c.t.Errorf("the interface of %s: %s", pod, seen)
	}
	if text := c.in("exec", pod, "--", "ip", "addr", "show", "f1u"); !strings.Contains(text, "inet "+ip) {
		c.t.Errorf("%s has no %s: %s", pod, ip, text)
	}
	c.until("network data of "+pod, func() error {
		claim, err := c.claim(pod)
		if err != nil || len(claim.Status.Devices) != 1 || claim.Status.Devices[0].NetworkData == nil {
			return fmt.Errorf("%+v, %w", claim, err)
		}
		n := claim.Status.Devices[0].NetworkData
		if n.InterfaceName != "f1u" || n.HardwareAddress != seen[1] || len(n.IPs) != 1 || n.IPs[0] != ip {
			return fmt.Errorf("%+v, and the pod has %s", n, seen)
		}
		return nil
	})
	return strings.Join(seen, " ")
}

// interfaceOf is the index, the MAC, the MTU and the state of a pod's interface. Another
// interface of this name would have another index.
func (c *cluster) interfaceOf(pod string) []string {
	c.t.Helper()
	const dir = "/sys/class/net/f1u/"
	return strings.Fields(c.in("exec", pod, "--", "cat", dir+"ifindex", dir+"address", dir+"mtu", dir+"operstate"))
}

// same checks that a pod still has the interface that it had.
func (c *cluster) same(pod, when, before string) {
	c.t.Helper()
	if now := strings.Join(c.interfaceOf(pod), " "); now != before {
		c.t.Errorf("when %s: %s has %s, not %s", when, pod, now, before)
	}
}

// restarted waits until the container of a pod has started again.
func (c *cluster) restarted(pod string) {
	c.t.Helper()
	c.until(pod+" started again", func() error {
		var p corev1.Pod
		if err := c.get("pod", pod, &p); err != nil {
			return err
		}
		if s := p.Status.ContainerStatuses[0]; s.RestartCount == 0 || s.State.Running == nil {
			return fmt.Errorf("%+v", s.State)
		}
		return nil
	})
}

// arrives waits until a pod has received some hundred packets more, as it reports itself.
func (c *cluster) arrives(pod string) {
	c.t.Helper()
	first := int64(-1)
	c.until("packets at "+pod, func() error {
		all, err := c.intervals(pod)
		sum := int64(0)
		for _, r := range all {
			sum += r.Received
		}
		if err == nil && first < 0 {
			first = sum
		}
		if err != nil || sum < first+500 {
			return fmt.Errorf("%d, %d before: %w", sum, first, err)
		}
		return nil
	})
}

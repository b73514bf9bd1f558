// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// No packet is lost while any of our daemons, or the kubelet, dies.
func TestDaemonDeathsLoseNothing(t *testing.T) {
	c := newCluster(t)
	c.traffic(false)
	node := c.node("du")
	for name, fault := range map[string]func(){
		"dray-node killed":        func() { c.killProgram(node, "/dray-node") },
		"dray-broker killed":      func() { c.killProgram(node, "/dray-broker") },
		"dray-operator killed":    func() { c.killProgram("n1", "/dray-operator"); c.killProgram("n2", "/dray-operator") },
		"dray-broker pod deleted": func() { c.deleteDaemon("dray-broker", node) },
		"dray-node rolled out": func() {
			c.kubectl("-n", "dray-system", "rollout", "restart", "daemonset/dray-node")
			c.kubectl("-n", "dray-system", "rollout", "status", "daemonset/dray-node", "--timeout", patience.String())
		},
		"kubelet killed": func() { c.killProgram(node, "kubelet") },
	} {
		fault()
		c.flows()
		t.Log(name)
	}
	c.lossless()
}

// killProgram kills a program on a node. It need not run there.
func (c *cluster) killProgram(node, program string) {
	c.t.Helper()
	c.on(node, "sh", "-c", "kill -KILL "+strings.Join(c.processes(node, program), " ")+" 2>/dev/null || true")
}

// processes are the processes of a node that run a command, whatever its flags.
func (c *cluster) processes(node, program string) []string {
	c.t.Helper()
	return strings.Fields(c.on(node, "sh", "-c", fmt.Sprintf(`for p in /proc/[0-9]*; do
	case "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)" in "%[1]s "|"%[1]s -"*) echo "${p#/proc/}";; esac; done`, program)))
}

func (c *cluster) deleteDaemon(name, node string) {
	c.t.Helper()
	c.kubectl("-n", "dray-system", "delete", "pod", c.daemon(name, node))
}

// Nothing of a chain is left on any node, however its pods go.
func TestNothingIsLeft(t *testing.T) {
	c := newCluster(t)
	t.Run("at once", func(t *testing.T) {
		for name, remove := range goes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t)
				c.traffic(true)
				remove(c)
				c.until("no claims", c.claims)
				t.Logf("pods of %s are gone", c.namespace)
			})
		}
	})
	c.until("clean", c.left)
	for name, remove := range goesAlone {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.traffic(true)
			if c.left() == nil {
				t.Error("two pods with ports leave no trace: the check cannot fail")
			}
			remove(c)
			took := c.until("clean", c.left)
			t.Logf("clean after %v", took.Round(time.Second))
		})
	}
}

// goes are ways in which the pods of a chain go, and goesAlone those that concern other pods as well.
var (
	goes = map[string]func(c *cluster){
		"pods deleted":       func(c *cluster) { c.in("delete", "pods", "--all") },
		"pods force-deleted": func(c *cluster) { c.in("delete", "pods", "--all", "--force", "--grace-period=0") },
		"namespace deleted":  func(c *cluster) { c.kubectl("delete", "namespace", c.namespace) },
		"chain, then pods": func(c *cluster) {
			c.in("delete", "chain", "f1")
			c.flows() // deleting the chain does not stop its pods
			c.in("delete", "pods", "--all")
		},
	}
	goesAlone = map[string]func(c *cluster){
		"while no driver runs": func(c *cluster) {
			c.withoutDriver(func() { c.in("delete", "pods", "--all", "--wait=false") })
		},
		"while the node has no power": func(c *cluster) {
			node := c.node("du")
			c.must("halt", node)
			c.in("delete", "pods", "--all", "--force", "--grace-period=0")
			c.must("boot", node)
		},
	}
)

// withoutDriver runs f while no dray-node runs in the cluster.
func (c *cluster) withoutDriver(f func()) {
	c.t.Helper()
	const nowhere = `{"spec":{"template":{"spec":{"nodeSelector":{"nowhere":"true"}}}}}`
	const everywhere = `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`
	c.kubectl("-n", "dray-system", "patch", "daemonset", "dray-node", "--type=merge", "-p", nowhere)
	c.until("no driver", func() error {
		pods, err := c.try("-n", "dray-system", "get", "pods", "-l", "app.kubernetes.io/name=dray-node", "-o", "name")
		if err == nil && pods != "" {
			err = fmt.Errorf("%s", pods)
		}
		return err
	})
	f()
	c.kubectl("-n", "dray-system", "patch", "daemonset", "dray-node", "--type=merge", "-p", everywhere)
	c.kubectl("-n", "dray-system", "rollout", "status", "daemonset/dray-node", "--timeout", patience.String())
}

// The kubelet alone would try again after 60 to 90 s; dray-node wakes the pod.
func TestAPodMadeWithoutADriverStartsSoonAfterIt(t *testing.T) {
	c := newCluster(t)
	c.apply(f1)
	var started time.Time
	c.withoutDriver(func() {
		c.apply(pod{name: "du", function: "du", command: sleeps}.manifest())
		c.until("failed once", func() error { return c.prints("FailedPrepareDynamicResources", "get", "events") })
		started = time.Now()
	})
	c.ready("du")
	t.Logf("Ready %v after the driver was started", time.Since(started).Round(100*time.Millisecond))
	var p corev1.Pod
	if err := c.get("pod", "du", &p); err != nil || p.Annotations["drayage.io/woken"] == "" {
		t.Errorf("nobody woke the pod: %v, %v", p.Annotations, err)
	}
}

// After a power cut, the pods get the same claims with the same addresses, and
// packets pass again: what a rival's driver forgets.
func TestAPowerCutKeepsTheClaims(t *testing.T) {
	c := newCluster(t)
	c.apply(f1)
	c.apply(pod{name: "du", function: "du", command: receives, restart: "Always"}.manifest())
	c.apply(pod{name: "cu-up", function: "cu-up", command: sends, restart: "Always"}.manifest())
	c.ready("du", "cu-up")
	c.flows()
	before, err := c.claim("du")
	if err != nil {
		t.Fatal(err)
	}
	node := c.node("du")
	start := time.Now()
	c.must("reboot", node)
	booted := time.Now()
	c.until("restarted", func() error {
		var p corev1.Pod
		if err := c.get("pod", "du", &p); err != nil {
			return err
		}
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].RestartCount == 0 {
			return fmt.Errorf("%+v", p.Status.ContainerStatuses)
		}
		return nil
	})
	c.ready("du", "cu-up")
	c.flows()
	t.Logf("booted after %v, traffic %v later", booted.Sub(start).Round(time.Second), time.Since(booted).Round(time.Second))
	after, err := c.claim("du")
	if err != nil || after.UID != before.UID || len(after.Status.Devices) != 1 || !reflect.DeepEqual(after.Status.Devices[0].NetworkData, before.Status.Devices[0].NetworkData) {
		t.Errorf("before %+v, after %+v: %v", before.Status, after.Status, err)
	}
}

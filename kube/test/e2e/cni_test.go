// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Without NRI, pods have interfaces by dray-cni, a plugin in the chain of the pod network.
func TestInterfacesByCNI(t *testing.T) {
	c := newCluster(t)
	c.awaitNetwork()
	c.useCNI()
	c.apply(f1Interfaces)
	c.apply(pod{name: "du", function: "du", command: receivesUDP, restart: "OnFailure", node: "n1"}.manifest())
	c.apply(pod{name: "cu-up", function: "cu-up", command: sendsUDPLater, node: "n1"}.manifest())
	c.ready("du", "cu-up")
	c.awaitTransport("bridge")
	du := c.restrictedInterface("du", "10.38.0.2/24")
	c.restrictedInterface("cu-up", "10.38.0.1/24")
	c.killProgram("n1", "draygen sink")
	c.restarted("du")
	c.same("du", "its container started again", du)

	c.receiving("du")
	c.in("exec", "cu-up", "--", "kill", "-USR1", "1")
	c.arrives("du")
	c.until("dray-node is back", c.killed("/dray-node", "n1"))
	c.arrives("du")
	c.same("du", "dray-node died", du)
	c.lossless()

	c.in("delete", "pods", "--all")
	c.apply(pod{name: "du", function: "du", command: receivesUDP, node: "n2"}.manifest())
	c.apply(pod{name: "cu-up", function: "cu-up", command: sendsUDP, node: "n1"}.manifest())
	c.ready("du", "cu-up")
	c.awaitTransport("vxlan")
	c.restrictedInterface("du", "10.38.0.2/24")
	c.arrives("du")
	c.in("delete", "pods", "--all")
	c.until("clean", c.left)
}

// podNetwork is the configuration of a node's pod network.
const podNetwork = "/etc/cni/net.d/10-pods.conflist"

// useCNI has dray-cni report pods until the end of the test.
func (c *cluster) useCNI() {
	c.t.Helper()
	before := map[string]string{}
	for _, node := range []string{"n1", "n2"} {
		before[node] = c.on(node, "cat", podNetwork)
	}
	c.t.Cleanup(func() {
		for node, text := range before {
			c.replaceFile(node, podNetwork, text)
			c.on(node, "rm", "/opt/cni/bin/dray-cni")
		}
		c.install("base")
	})
	c.install("cni")
	for node, text := range before {
		var conf map[string]any
		if err := json.Unmarshal([]byte(text), &conf); err != nil {
			c.t.Fatal(err)
		}
		conf["plugins"] = append(conf["plugins"].([]any), map[string]string{"type": "dray-cni"})
		chained, err := json.Marshal(conf)
		if err != nil {
			c.t.Fatal(err)
		}
		c.replaceFile(node, podNetwork, string(chained))
	}
}

// install installs a folder of kube/deploy, and waits until each node has its dray-node.
func (c *cluster) install(folder string) {
	c.t.Helper()
	c.kubectl("apply", "-k", "../../deploy/"+folder)
	c.kubectl("-n", "dray-system", "rollout", "status", "daemonset/dray-node", fmt.Sprintf("--timeout=%s", patience))
}

// replaceFile replaces a file of a node at once.
func (c *cluster) replaceFile(node, file, text string) {
	c.t.Helper()
	quoted := "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	c.on(node, "sh", "-c", fmt.Sprintf("printf %%s %s >%s.new && mv %[2]s.new %[2]s", quoted, file))
}

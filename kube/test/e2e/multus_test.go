// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// multusEnv names a program of Multus, which calls dray-cni for networks that a pod's annotation names.
const multusEnv = "DRAY_MULTUS"

// With Multus, only pods that name its network are reported by dray-cni.
func TestInterfacesByMultus(t *testing.T) {
	multus := os.Getenv(multusEnv)
	if multus == "" {
		t.Skip("needs Multus: build its program cmd/multus, and name it by " + multusEnv)
	}
	c := newCluster(t)
	c.awaitNetwork()
	c.useMultus(multus)
	c.apply(f1Interfaces)
	c.apply(multusNetwork)
	c.apply(inNetwork("dray@f1u", pod{name: "du", function: "du", command: receivesUDP, node: "n1"}))
	c.apply(inNetwork("dray@f1u", pod{name: "cu-up", function: "cu-up", command: sendsUDP, node: "n1"}))
	c.ready("du", "cu-up")
	c.awaitTransport("bridge")
	c.restrictedInterface("du", "10.38.0.2/24")
	before := c.restrictedInterface("cu-up", "10.38.0.1/24")
	c.arrives("du")
	c.networkStatus("du", "10.38.0.2")

	c.in("delete", "pod", "du")
	c.apply(inNetwork("dray@f1u", pod{name: "du", function: "du", command: receivesUDP, node: "n2"}))
	c.ready("du")
	c.awaitTransport("vxlan")
	c.arrives("du")
	c.same("cu-up", "the other pod moved to n2", before)

	c.in("delete", "pods", "--all")
	c.apply(inNetwork("dray@other", pod{name: "du", function: "du", command: sleeps, node: "n1"}))
	c.until("refused", func() error {
		out, err := c.try("-n", c.namespace, "get", "events", "--field-selector", "reason=FailedCreatePodSandBox")
		if err == nil && !strings.Contains(out, "the pod has no port other with face netdev, nor a DPDK device with a socket: it has f1u") {
			err = fmt.Errorf("events: %s", out)
		}
		return err
	})
	c.in("delete", "pods", "--all")
	c.until("clean", c.left)
}

// A memif port can be named as a network, too. Multus then shows its addresses, and asks for a device
// information file only if the network also has a resource of a device plugin.
func TestDevicesByMultus(t *testing.T) {
	multus := os.Getenv(multusEnv)
	if multus == "" {
		t.Skip("needs Multus: build its program cmd/multus, and name it by " + multusEnv)
	}
	c := newCluster(t)
	c.useMultus(multus)
	c.apply(memifChain)
	c.apply(multusNetwork)
	for name, mode := range map[string]string{"src": "txonly", "dst": "rxonly"} {
		manifest := memifPod(dpdkPod{name, mode, false, runtimeDefault, "memory: 256Mi"}, 1001)
		c.apply(strings.Replace(manifest, "metadata: {name: "+name+",", "metadata: {name: "+name+", annotations: {k8s.v1.cni.cncf.io/networks: dray@n3},", 1))
	}
	c.ready("src", "dst")
	c.memifFlows()
	for _, pod := range []string{"src", "dst"} {
		data := c.networkData(pod)
		text := strings.Join(strings.Fields(c.in("get", "pod", pod, "-o", `jsonpath={.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}`)), "")
		if !strings.Contains(text, `"interface":"n3"`) || !strings.Contains(text, `"mac":"`+data.HardwareAddress+`"`) {
			t.Errorf("%s: %s", pod, text)
		}
	}
	c.in("delete", "pods", "--all", "--now")
	c.until("clean", c.left)
}

const multusNetwork = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: dray}
spec: {config: '{"cniVersion": "1.1.0", "type": "dray-cni"}'}
`

// inNetwork is the manifest of a pod with the annotation that Multus reads.
func inNetwork(network string, p pod) string {
	name := "metadata: {name: " + p.name + ","
	return strings.Replace(p.manifest(), name, name+" annotations: {k8s.v1.cni.cncf.io/networks: "+network+"},", 1)
}

// networkStatus checks what Multus says about a pod's interface.
func (c *cluster) networkStatus(pod, ip string) {
	c.t.Helper()
	text := c.in("get", "pod", pod, "-o", `jsonpath={.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}`)
	var all []struct {
		Name, Interface, MAC string
		IPs                  []string
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		c.t.Fatalf("%q: %v", text, err)
	}
	seen := c.interfaceOf(pod)
	for _, s := range all {
		if s.Name == c.namespace+"/dray" && s.Interface == "f1u" && s.MAC == seen[1] && len(s.IPs) == 1 && s.IPs[0] == ip {
			return
		}
	}
	c.t.Errorf("network status %s, and the pod has %s", text, seen)
}

// What Multus needs of the cluster. It gets events, pods and networks with a token.
const multusObjects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {config: {type: string}}}}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: multus}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-multus}
rules:
- {apiGroups: [k8s.cni.cncf.io], resources: [network-attachment-definitions], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods/status], verbs: [update]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-multus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-multus}
subjects: [{kind: ServiceAccount, name: multus, namespace: %s}]
`

// useMultus gives pod networks to Multus until the end of the test. It passes the pod network on.
func (c *cluster) useMultus(program string) {
	c.t.Helper()
	const configuration, access, plugin = "/etc/cni/net.d/00-multus.conf", "/etc/cni/multus.kubeconfig", "/opt/cni/bin/multus"
	text, err := os.ReadFile(program)
	if err != nil {
		c.t.Fatal(err)
	}
	nodes := []string{"n1", "n2"}
	c.t.Cleanup(func() {
		for _, node := range nodes {
			c.on(node, "rm", "-f", configuration, access, plugin, "/opt/cni/bin/dray-cni")
		}
		c.install("base")
		c.kubectl("delete", "--ignore-not-found", "clusterrole/test-multus", "clusterrolebinding/test-multus", "customresourcedefinition/network-attachment-definitions.k8s.cni.cncf.io")
	})
	c.install("cni")
	c.apply(fmt.Sprintf(multusObjects, c.namespace))
	token := strings.TrimSpace(c.in("create", "token", "multus"))
	for _, node := range nodes {
		authority := base64.StdEncoding.EncodeToString([]byte(c.on(node, "cat", "/etc/kubernetes/ca.crt")))
		c.replaceFile(node, access, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "https://10.96.0.1:443", certificate-authority-data: %s}}],
users: [{name: c, user: {token: %s}}], contexts: [{name: c, context: {cluster: c, user: c}}]}`, authority, token))
		if _, err := c.run(string(text), "on", node, "sh", "-c", "cat >"+plugin+" && chmod 755 "+plugin); err != nil {
			c.t.Fatal(err)
		}
		c.replaceFile(node, configuration, fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "multus", "type": "multus", "kubeconfig": %q, "delegates": [%s]}`,
			access, c.on(node, "cat", podNetwork)))
	}
}

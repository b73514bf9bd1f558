// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// Two restricted pods pass packets over shared memory, with the node's users
// and with users of their own; the chain's status shows the verdict.
func TestTwoPodsPassPackets(t *testing.T) {
	t.Parallel()
	for _, hostUsers := range []bool{true, false} {
		t.Run(fmt.Sprintf("hostUsers=%v", hostUsers), func(t *testing.T) {
			c := newCluster(t)
			c.traffic(hostUsers)
			c.until("met", func() error {
				chain, err := c.chain()
				if err != nil {
					return err
				}
				for _, want := range []string{v1alpha1.ConditionPlanned, v1alpha1.ConditionReady, v1alpha1.ConditionMet} {
					if got := condition(chain.Status.Conditions, want); got.Status != metav1.ConditionTrue {
						return fmt.Errorf("%s: %+v", want, got)
					}
				}
				return nil
			})
			t.Logf("kubectl get chains:\n%s", c.in("get", "chains"))
			c.confined()
			c.changedLimits()
			c.lossless()
		})
	}
}

// changedLimits changes what the chain requires. The running pods have verdicts by that.
func (c *cluster) changedLimits() {
	c.t.Helper()
	for _, limit := range []string{"200ms", "150ms"} {
		c.apply(required("latency: " + limit + ", percentile: 90"))
		c.requirement("latency", metav1.ConditionTrue, v1alpha1.ReasonMet, "required: ≤ "+limit+" at p90; measured: ")
	}
	chain, err := c.chain()
	if err != nil || condition(chain.Status.Conditions, v1alpha1.ConditionReady).Status != metav1.ConditionTrue {
		c.t.Errorf("with other limits: %+v, %v", chain, err)
	}
}

func condition(all []metav1.Condition, kind string) metav1.Condition {
	for _, c := range all {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// confined checks what the pods have: no capability, and no port of anyone else.
func (c *cluster) confined() {
	c.t.Helper()
	for _, p := range []string{"du", "cu-up"} {
		status := c.in("exec", p, "--", "cat", "/proc/self/status")
		for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains(status, want) {
				c.t.Errorf("%s: no %q in %s", p, want, status)
			}
		}
		if got := c.in("exec", p, "--", "ls", "/run/dray", "/run/dray/ports"); strings.Join(strings.Fields(got), " ") != "/run/dray: ports /run/dray/ports: f1u" {
			c.t.Errorf("%s sees %q", p, got)
		}
		if _, err := c.try("-n", c.namespace, "exec", p, "--", "touch", "/run/dray/ports/x"); err == nil {
			c.t.Errorf("%s can write beside its ports", p)
		}
	}
}

// Only the user that the pod names can open its ports, also on the node itself.
func TestAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(f1)
	c.apply(pod{name: "du", function: "du", command: sleeps}.manifest())
	c.ready("du")
	claim, err := c.claim("du")
	if err != nil {
		t.Fatal(err)
	}
	node, dir := c.node("du"), "/run/dray/k8s/claims/"+string(claim.UID)
	if out := c.on(node, "sh", "-c", "stat -c '%a %u %F' "+dir+"/ports/f1u; stat -c %a "+dir); out != "600 1000 socket\n700\n" {
		t.Errorf("the socket on the node: %q", out)
	}
	if out := c.on(node, "setpriv", "--reuid=1001", "--clear-groups", "sh", "-c", "ls "+dir+" 2>&1 || true"); !strings.Contains(out, "Permission denied") {
		t.Errorf("another user of the node sees %q", out)
	}
}

// The claim says what the pod has: the name, the addresses.
func TestTheClaimShowsTheAddresses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(f1)
	c.apply(pod{name: "du", function: "du", command: sleeps}.manifest())
	c.ready("du")
	c.until("network data", func() error {
		claim, err := c.claim("du")
		if err != nil {
			return err
		}
		if len(claim.Status.Devices) != 1 || claim.Status.Devices[0].NetworkData == nil {
			return fmt.Errorf("status %+v", claim.Status.Devices)
		}
		if n := claim.Status.Devices[0].NetworkData; n.InterfaceName != "f1u" || n.HardwareAddress == "" || !reflect.DeepEqual(n.IPs, []string{"10.38.0.2/24"}) {
			return fmt.Errorf("network data %+v", n)
		}
		return nil
	})
}

// Nobody but the operator says which port a claim stands for.
func TestNobodyForgesAClaim(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	forged := `
apiVersion: resource.k8s.io/v1
kind: %s
metadata: {name: forged}
spec: %s`
	const spec = `{devices: {requests: [{name: f1u, exactly: {deviceClassName: ports.drayage.io}}],
  config: [{opaque: {driver: ports.drayage.io, parameters: {apiVersion: drayage.io/v1alpha1, kind: PortParameters, chain: f1, function: du, port: f1u}}}]}}`
	for kind, s := range map[string]string{"ResourceClaim": spec, "ResourceClaimTemplate": "{spec: " + spec + "}"} {
		if err := c.tryApply(fmt.Sprintf(forged, kind, s)); err == nil || !strings.Contains(err.Error(), "only dray-operator may say") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	// A claim without parameters gets no port.
	c.apply(`{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: empty}, spec: {spec: {devices: {requests: [{name: f1u, exactly: {deviceClassName: ports.drayage.io}}]}}}}`)
	c.apply(pod{name: "du", function: "du", command: sleeps, template: "empty"}.manifest())
	c.until("refused", func() error { return c.prints("it has no PortParameters", "get", "events") })
}

// A chain that no node can carry has no templates; its pods wait, and say why.
func TestAnInfeasibleChainIsNeverHalfUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(strings.ReplaceAll(f1, "latency: 100ms", "latency: 1ns"))
	c.apply(pod{name: "du", function: "du", command: sleeps}.manifest())
	c.until("infeasible", func() error {
		chain, err := c.chain()
		if err != nil {
			return err
		}
		planned := condition(chain.Status.Conditions, v1alpha1.ConditionPlanned)
		if planned.Status != metav1.ConditionFalse || planned.Reason != v1alpha1.ReasonInfeasible || !strings.Contains(planned.Message, "latency") {
			return fmt.Errorf("%+v", planned)
		}
		return c.prints("latency", "get", "events", "--field-selector", "involvedObject.name=du")
	})
	var p corev1.Pod
	if err := c.get("pod", "du", &p); err != nil || p.Status.Phase != corev1.PodPending {
		t.Errorf("the pod is %s: %v", p.Status.Phase, err)
	}
	if templates := c.in("get", "resourceclaimtemplates", "-o", "name"); templates != "" {
		t.Errorf("templates %s", templates)
	}
}

func TestAnInvalidChainIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for change, want := range map[string]string{
		"ends: [cu-up.f1u, ru.f1u]":                "an end names a function and one of its ports",
		"ends: [cu-up.f1u]":                        "should have at least 2 items",
		"ends: [cu-up.f1u, du.f1u]\n    typo: one": "unknown field \"spec.links[0].typo\"",
	} {
		err := c.tryApply(strings.ReplaceAll(f1, "ends: [cu-up.f1u, du.f1u]", change))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// A dray-node that was taken over reaches nothing of another node.
func TestDrayNodeStaysOnItsNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(f1)
	c.apply(pod{name: "du", function: "du", command: sleeps}.manifest())
	c.ready("du")
	own, other := c.node("du"), "n1"
	if own == other {
		other = "n2"
	}
	as := func(node string, args ...string) error {
		_, err := c.try(append([]string{"--as", "system:serviceaccount:dray-system:dray-node", "--as-user-extra", "authentication.kubernetes.io/node-name=" + node}, args...)...)
		return err
	}
	if owner, node := c.kubectl("-n", "dray-system", "get", "configmap", "dray-inventory-"+own, "-o", "jsonpath={.metadata.ownerReferences[*].uid}"),
		c.kubectl("get", "node", own, "-o", "jsonpath={.metadata.uid}"); owner != node {
		t.Errorf("the inventory of a node that is deleted stays: its owner is %q, the node %q", owner, node)
	}
	annotate := []string{"-n", c.namespace, "annotate", "pod", "du", "--overwrite", "drayage.io/woken=now"}
	if err := as(own, annotate...); err != nil {
		t.Errorf("a pod of its own node: %v", err)
	}
	for what, err := range map[string]error{
		"a pod of another node":         as(other, annotate...),
		"labels of a pod":               as(own, "-n", c.namespace, "label", "pod", "du", "x=y"),
		"an image":                      as(own, "-n", c.namespace, "set", "image", "pod/du", "c=evil"),
		"the inventory of another node": as(other, "-n", "dray-system", "patch", "configmap", "dray-inventory-"+own, "-p", `{"data":{"x":"y"}}`),
		"the resources of another node": as(other, "delete", "resourceslices", "--field-selector", "spec.nodeName="+own),
		"secrets":                       as(own, "get", "secrets", "-A"),
	} {
		if err == nil || !strings.Contains(err.Error(), "may only") && !strings.Contains(err.Error(), "cannot") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A role without the verb that the API server does not name is an event of dray-node.
func TestAMissingVerbIsAnEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("changes what every pod of dray-node may do: run make test-kube")
	}
	c := newCluster(t)
	role := c.kubectl("get", "clusterrole", "dray-node", "-o", "json")
	var less struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Rules      []struct {
			APIGroups     []string `json:"apiGroups"`
			Resources     []string `json:"resources"`
			ResourceNames []string `json:"resourceNames,omitempty"`
			Verbs         []string `json:"verbs"`
		} `json:"rules"`
	}
	if err := json.Unmarshal([]byte(role), &less); err != nil {
		t.Fatal(err)
	}
	all := len(less.Rules)
	for i, r := range less.Rules {
		if slices.Contains(r.Verbs, "associated-node:update") {
			less.Rules = slices.Delete(less.Rules, i, i+1)
			break
		}
	}
	if len(less.Rules) == all {
		t.Fatalf("no rule has the verb: %s", role)
	}
	less.Metadata = map[string]any{"name": "dray-node"}
	text, err := json.Marshal(less)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := filepath.Abs("../../deploy/base/dray-node-rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kubectl("replace", "-f", whole) })
	if _, err := c.run(string(text), "kubectl", "replace", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.apply(f1)
	c.apply(pod{name: "du", function: "du", command: sleeps}.manifest())
	c.ready("du")
	c.until("an event", func() error {
		events, err := c.try("-n", "dray-system", "get", "events", "--field-selector", "reason=Forbidden", "-o", "wide")
		if err == nil && !strings.Contains(events, "associated-node:update") {
			err = errors.New(events)
		}
		return err
	})
}

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

/*
The chains of these tests say that 200 km of fibre join the nodes, and allow less than that delay:

	node n1 ──────── 200 km ──────── node n2

	pod cu-up ── f1u ── pod du
*/
func placedChain(name, cu, du string) string {
	return fmt.Sprintf(`
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: %s}
spec:
  placement:
    nodeSelector: {kubernetes.io/os: linux}
    lines: [{between: [n1, n2], rate: 10Gbps, length: 200km}]
  functions:
  - {name: cu-up, memory: 64Mi%s, ports: [{name: f1u, face: native, mtu: 1400}]}
  - {name: du, memory: 64Mi%s, ports: [{name: f1u, face: native, mtu: 1400}]}
  links:
  - {name: f1u, ends: [cu-up.f1u, du.f1u], requires: {latency: 900us, percentile: 50}}
`, name, cu, du)
}

// The operator places a function next to the one whose node the chain names. The pods name neither.
func TestFunctionsArePlacedTogether(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"n2", "n1"} {
		c := newCluster(t)
		c.apply(placedChain("f1", ", host: "+node, ""))
		for name, command := range map[string]string{"du": receives, "cu-up": sends} {
			c.apply(pod{name: name, function: name, command: command, anywhere: true}.manifest())
		}
		c.ready("du", "cu-up")
		for _, name := range []string{"du", "cu-up"} {
			if got := c.node(name); got != node {
				t.Errorf("%s is on %s, want %s", name, got, node)
			}
		}
		chain, err := c.chain()
		if err != nil {
			t.Fatal(err)
		}
		placed := condition(chain.Status.Conditions, v1alpha1.ConditionPlanned)
		if want := fmt.Sprintf("placed: cu-up on %s, du on %[1]s", node); placed.Status != metav1.ConditionTrue || !strings.Contains(placed.Message, want) {
			t.Errorf("%+v, want %s", placed, want)
		}
		if p := chain.Status.Placement; len(p) != 2 || p[1].Function != "du" || p[1].Node != node || p[1].Reason == "" {
			t.Errorf("%+v", p)
		}
		c.flows()
	}
}

// A chain without a placement says what would help, and so do the events of its pods, which wait.
func TestAChainWithoutAPlacementSaysWhatHelps(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(placedChain("f1", ", host: n1", ", host: n2"))
	c.apply(pod{name: "du", function: "du", command: sleeps, anywhere: true}.manifest())
	const change = "less fibre between n1 and n2"
	c.until("infeasible", func() error {
		chain, err := c.chain()
		if err != nil {
			return err
		}
		planned := condition(chain.Status.Conditions, v1alpha1.ConditionPlanned)
		if planned.Reason != v1alpha1.ReasonInfeasible || !strings.HasPrefix(planned.Message, "placement: latency ≤ 900us at p50") || !strings.Contains(planned.Message, change) {
			return fmt.Errorf("%+v", planned)
		}
		return c.prints(change, "get", "events", "--field-selector", "involvedObject.name=du")
	})
	var p corev1.Pod
	if err := c.get("pod", "du", &p); err != nil || p.Status.Phase != corev1.PodPending {
		t.Errorf("the pod is %s: %v", p.Status.Phase, err)
	}
	c.apply(placedChain("f1", "", "")) // the placement is the planner's
	c.ready("du")
}

// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// over is the chain's spec with more fields for its link.
func over(fields string) string {
	return strings.Replace(chainSpec(easy), `"name":"f1u","ends"`, fields+`,"name":"f1u","ends"`, 1)
}

// TestALinkMovesUnderItsPods: another transport leaves pods as they are. The link is ready once
// every node has it, and what was judged before does not count.
func TestALinkMovesUnderItsPods(t *testing.T) {
	for fields, back := range map[string]string{`"transport":"bridge"`: `"transport":"auto"`, `"isolation":"no-shared-memory"`: `"isolation":"link"`} {
		b := newBench(t, newChain(chainSpec(easy)), newNode("n1", withBridge))
		good := []metav1.Condition{ready(), says("latency", yes), says("packet_loss_ratio", yes)}
		b.reconcile()
		for _, pod := range []string{"cu", "du"} {
			b.newPod(pod+"-1", pod, "n1", good...)
		}
		b.receives("cu-1", `{"transport":"shm"}`) // the node of du is of another release, and says nothing
		b.wants(b.reconcile(), v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, "")
		b.change(over(fields))
		c := b.reconcile()
		if l := c.Status.Links[0]; l.Local != "bridge" || l.Transport != "bridge" || l.Ends[0].Transport != "shm" {
			t.Errorf("%s: %+v", fields, l)
		}
		b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: the node n1 still has cu.f1u on shm, not on bridge; the node n1 still has du.f1u")
		b.wants(c, v1alpha1.ConditionMet, unknown, v1alpha1.ReasonNotMeasured, "no figures yet")
		b.receives("cu-1", `{"transport":"bridge"}`)
		b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: the node n1 still has du.f1u on shm, not on bridge")
		b.receives("du-1", `{"transport":"bridge"}`)
		b.wants(b.reconcile(), v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
		b.change(over(back))
		c = b.reconcile()
		if b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "still has cu.f1u on bridge, not on shm"); c.Status.Links[0].Local != "shm" {
			t.Errorf("back: %+v", c.Status.Links[0])
		}
	}
}

// TestALinkThatCannotMove: its pods must be replaced, or their node cannot make it; nodes
// are not asked to.
func TestALinkThatCannotMove(t *testing.T) {
	for name, c := range map[string]struct{ node, spec, why string }{
		"other ports":  {"n1", strings.ReplaceAll(over(`"transport":"bridge"`), `"native"`, `"native","mtu":1600`), "has its ports by an earlier plan: replace the pod"},
		"another node": {"n2", over(`"transport":"bridge"`), "the node n2 still has cu.f1u on shm, not on bridge"},
	} {
		b := newBench(t, newChain(chainSpec(easy)), newNode("n1", withBridge), newNode("n2"))
		b.reconcile()
		for _, pod := range []string{"cu", "du"} {
			b.newPod(pod+"-1", pod, c.node, ready())
			b.receives(pod+"-1", `{"transport":"shm"}`)
		}
		b.reconcile()
		b.change(c.spec)
		got := b.reconcile()
		if b.wants(got, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, c.why); got.Status.Links[0].Local != "shm" {
			t.Errorf("%s: %+v", name, got.Status.Links[0])
		}
	}
}

// TestWhatANodeSaysOfAPort: nonsense is left out.
func TestWhatANodeSaysOfAPort(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	for data, want := range map[string]string{
		`{"transport":"shm"}`: "shm <nil>", `{"transport":"<script>"}`: " <nil>", `{"transport":7}`: " <nil>", `[]`: " <nil>",
		`{"transport":"vxlan","address":"x","vni":7}`:            "vxlan <nil>",
		`{"transport":"vxlan","address":"10.0.0.1","vni":-1}`:    "vxlan <nil>",
		`{"transport":"vxlan","address":"10.0.0.1","vni":7}`:     "vxlan &{10.0.0.1 7}",
		`{"address":"10.0.0.1","vni":7,"of":"an old dray-node"}`: " &{10.0.0.1 7}",
	} {
		b.receives("cu-1", data)
		if e := b.reconcile().Status.Links[0].Ends[0]; fmt.Sprint(e.Transport, " ", e.Tunnel) != want {
			t.Errorf("%s: %s %v, want %s", data, e.Transport, e.Tunnel, want)
		}
	}
}

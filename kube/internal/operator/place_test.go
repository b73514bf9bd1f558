// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// placedSpec is a chain whose functions need 1 and 3 CPUs, and whose link leaves too little for
// the 200 km between the nodes.
const placedSpec = `{"placement":{"lines":[{"between":["n1","n2"],"length":"200km"}]},
  "functions":[{"name":"cu","cpus":1,"ports":[{"name":"f1u","face":"native"}]},{"name":"du","cpus":3,"ports":[{"name":"f1u","face":"native"}]}],
  "links":[{"name":"f1u","ends":["cu.f1u","du.f1u"],"requires":{"latency":"900us","percentile":50}}]}`

// machine is a node of the cluster with CPUs for pods.
func machine(name string, cpus string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourceMemory: resource.MustParse("8Gi")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// newPlacedBench has the chain and two nodes with that many CPUs.
func newPlacedBench(t *testing.T, first, second string) *bench {
	t.Helper()
	objects := []client.Object{newChain(placedSpec)}
	for name, cpus := range map[string]string{"n1": first, "n2": second} {
		objects = append(objects, withNetwork(newNode(name, withVxlan), 9000), machine(name, cpus))
	}
	return newBench(t, objects...)
}

// selected is the selector of each function's template.
func (b *bench) selected() string {
	b.Helper()
	var all []string
	for _, function := range []string{"cu", "du"} {
		t, ok := b.templates()["f1-"+function]
		text := "no template"
		if ok {
			_, text, _ = strings.Cut(t.Spec.Spec.Devices.Requests[0].Exactly.Selectors[0].CEL.Expression, " in ")
		}
		all = append(all, function+" "+text)
	}
	return strings.Join(all, ", ")
}

// edit changes a node.
func (b *bench) edit(name string, change func(*corev1.Node)) {
	b.Helper()
	var n corev1.Node
	b.must(b.r.Get(context.Background(), types.NamespacedName{Name: name}, &n))
	change(&n)
	status := n.Status
	b.must(b.r.Update(context.Background(), &n))
	n.Status = status
	b.must(b.r.Status().Update(context.Background(), &n))
}

func cordon(n *corev1.Node) { n.Spec.Unschedulable = true }

// remove deletes a pod and its claim.
func (b *bench) remove(pod string) {
	b.Helper()
	for _, o := range []client.Object{&corev1.Pod{}, &resourcev1.ResourceClaim{}} {
		name := pod
		if _, isClaim := o.(*resourcev1.ResourceClaim); isClaim {
			name += "-ports"
		}
		b.must(b.r.Get(context.Background(), key(name), o))
		b.must(b.r.Delete(context.Background(), o))
	}
}

// wantsSelected fails unless the templates are for these nodes.
func (b *bench) wantsSelected(want string) {
	b.Helper()
	if got := b.selected(); got != want {
		b.Errorf("templates for %s, want %s", got, want)
	}
}

const onN1, onN2, nowhere = `cu ["n1"], du ["n1"]`, `cu ["n2"], du ["n2"]`, "cu no template, du no template"

// The only node with room for both functions gets them, and the status says why.
func TestFunctionsArePlaced(t *testing.T) {
	b := newPlacedBench(t, "3500m", "4")
	c := b.reconcile()
	b.wantsSelected(onN2)
	b.wants(c, v1alpha1.ConditionPlanned, yes, v1alpha1.ReasonPlanned, "on n1, n2; placed: cu on n2, du on n2")
	if p := c.Status.Placement; len(p) != 2 || p[0].Function != "cu" || p[0].Node != "n2" || !strings.Contains(p[0].Reason, "not on n1: link f1u: latency ≤ 900us at p50") {
		t.Errorf("%+v", p)
	}
	if got := b.told(); !strings.Contains(got, "Normal Placed cu on n2, du on n2") {
		t.Errorf("events: %s", got)
	}
	b.writes = nil
	if b.reconcile(); len(b.writes) > 0 || b.told() != "" {
		t.Errorf("the second time: %v", b.writes)
	}
}

// Without a placement there are no templates; the chain and the pods say what would help.
func TestNoPlacement(t *testing.T) {
	b := newPlacedBench(t, "3", "2")
	b.newPod("du-1", "du", "")
	c := b.reconcile()
	const change = "less fibre between n1 and n2"
	b.wants(c, v1alpha1.ConditionPlanned, no, v1alpha1.ReasonInfeasible, "placement: latency ≤ 900us at p50 of link f1u: it cannot hold together with ")
	b.wants(c, v1alpha1.ConditionPlanned, no, v1alpha1.ReasonInfeasible, change)
	b.wants(c, v1alpha1.ConditionPlanned, no, v1alpha1.ReasonInfeasible, "1 more CPU on n1")
	b.wantsSelected(nowhere)
	told := strings.Split(b.told(), "\n")
	if len(told) != 2 || !strings.HasPrefix(told[0], "Warning Infeasible placement: ") || !strings.Contains(told[1], "so this pod has no ports: placement: ") || !strings.Contains(told[1], change) {
		t.Errorf("events: %q", told)
	}
	b.edit("n1", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4") })
	b.reconcile()
	b.wantsSelected(onN1)
}

// A pod fixes the node of its function, and so the placement of the others.
func TestPodsKeepTheirPlace(t *testing.T) {
	b := newPlacedBench(t, "4", "4")
	b.reconcile()
	b.wantsSelected(onN1)
	b.newPod("cu-1", "cu", "n2", ready()) // by a claim from before
	c := b.reconcile()
	b.wantsSelected(onN2)
	if p := c.Status.Placement; p[0].Reason != runs || !strings.Contains(p[1].Reason, "not on n1: ") {
		t.Errorf("%+v", p)
	}
	b.edit("n2", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("3") })
	c = b.reconcile()
	b.wantsSelected(nowhere)
	b.wants(c, v1alpha1.ConditionPlanned, no, v1alpha1.ReasonInfeasible, "function cu on host n2")
	b.wants(c, v1alpha1.ConditionPlanned, no, v1alpha1.ReasonInfeasible, "Or replace the pods of cu: without them there is a placement")
	b.remove("cu-1")
	b.reconcile()
	b.wantsSelected(onN1)
}

// A placement stays while pods wait, also if another one costs as little.
func TestAPlacementStays(t *testing.T) {
	b := newPlacedBench(t, "3", "4")
	first := b.reconcile().Status.Placement
	b.wantsSelected(onN2)
	b.edit("n1", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("8") })
	c := b.reconcile()
	b.wantsSelected(onN2)
	if !slices.Equal(c.Status.Placement, first) {
		t.Errorf("%+v, before %+v", c.Status.Placement, first)
	}
	b.change(strings.Replace(placedSpec, "900us", "800us", 1))
	b.reconcile()
	b.wantsSelected(onN1)
}

// The next pods of a node that is drained go to another one. If there is none, those that run
// go on, and new ones wait.
func TestADrainedNodeIsLeft(t *testing.T) {
	for cpus, want := range map[string]string{"4": onN2, "3": nowhere} {
		b := newPlacedBench(t, "4", cpus)
		b.reconcile()
		b.told()
		for _, pod := range []string{"cu", "du"} {
			b.newPod(pod+"-1", pod, "n1", ready(), says("latency", yes))
		}
		b.reconcile()
		b.wantsSelected(onN1)
		if got := b.told(); strings.Contains(got, "Placed") {
			t.Errorf("an event of a placement that stays: %s", got)
		}
		b.edit("n1", cordon)
		c := b.reconcile()
		b.wantsSelected(want)
		b.wants(c, v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
		b.wants(c, v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, "")
		if want == onN2 {
			continue
		}
		b.wants(c, v1alpha1.ConditionPlanned, yes, v1alpha1.ReasonPlanned, "its pods go on, but new ones have no place: placement: ")
		b.newPod("du-2", "du", "")
		b.reconcile()
		if got := b.told(); !strings.Contains(got, "Warning Infeasible the chain f1 has no place for this pod: placement: ") {
			t.Errorf("events: %s", got)
		}
		b.edit("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		b.reconcile()
		b.wantsSelected(onN1)
	}
}

// A pod whose claim is for a node that its function has left waits for ever: the status names it.
func TestAPodWithAnEarlierPlacementIsNamed(t *testing.T) {
	b := newPlacedBench(t, "4", "4")
	b.reconcile()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "du-1-ports", Namespace: "ran",
		Labels:          map[string]string{v1alpha1.LabelChain: "f1", v1alpha1.LabelFunction: "du"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "du-1", UID: "u"}}}}
	claim.Spec = b.templates()["f1-du"].Spec.Spec
	b.must(b.r.Create(context.Background(), claim))
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: no pod has cu.f1u, du.f1u")
	b.edit("n1", cordon)
	c := b.reconcile()
	b.wantsSelected(onN2)
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "the pod du-1 has a claim by an earlier placement, and du is placed on n2 now: replace the pod")
}

// A chain that asks for no placement may be anywhere, whatever the nodes have.
func TestWithoutPlacementNodesDoNotCount(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"), machine("n1", "0"))
	c := b.reconcile()
	b.wantsSelected(onN1)
	if c.Status.Placement != nil {
		t.Errorf("%+v", c.Status)
	}
}

func TestAWrongPlacementIsInvalid(t *testing.T) {
	b := newBench(t, newChain(strings.Replace(placedSpec, "200km", "200 km", 1)), newNode("n1"))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, no, v1alpha1.ReasonInvalid, "spec.placement.lines[0].length: ")
}

// Only what a placement looks at makes the operator plan again.
func TestHeartbeatsOfNodesAreIgnored(t *testing.T) {
	old := machine("n1", "4")
	beat := old.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	for what, c := range map[string]struct {
		now  *corev1.Node
		want bool
	}{
		"heartbeat": {beat, false}, "other CPUs": {machine("n1", "5"), true}, "cordoned": {func() *corev1.Node { n := old.DeepCopy(); cordon(n); return n }(), true},
	} {
		if got := newMachine.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: c.now}); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	slim, err := slimNode(old)
	if err != nil || machineOf(slim.(*corev1.Node)).CPUs != 4 || closed(slim.(*corev1.Node)) != "" {
		t.Errorf("%+v, %v", slim, err)
	}
	notReady := old.DeepCopy()
	notReady.Status.Conditions[0].Status = corev1.ConditionUnknown
	if slim, _ := slimNode(notReady); closed(slim.(*corev1.Node)) != "it is not ready" {
		t.Errorf("%+v", slim)
	}
}

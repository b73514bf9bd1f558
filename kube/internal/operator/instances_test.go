// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// workers is a chain of a hub and up to so many workers.
func workers(instances int) string {
	return fmt.Sprintf(`{"functions":[{"name":"hub","ports":[{"name":"w","face":"native"}]},{"name":"worker","instances":%d,"ports":[{"name":"hub","face":"native"}]}],
	  "links":[{"name":"w","ends":["hub.w","worker.hub"],"requires":{"latency":"1ms"}}]}`, instances)
}

// newWorkers is a chain with a hub's pod.
func newWorkers(t *testing.T, instances int) *bench {
	b := newBench(t, newChain(workers(instances)), newNode("n1"))
	b.reconcile()
	b.newPod("hub", "hub", "n1", ready(), says("latency", yes))
	return b
}

func (b *bench) newWorker(name string) {
	b.Helper()
	b.newPod(name, "worker", "n1", ready(), says("latency", yes))
}

// newMember is a pod of a StatefulSet.
func (b *bench) newMember(name, ordinal string) {
	b.Helper()
	controller := true
	b.newPodOf(&metav1.ObjectMeta{
		Labels:          map[string]string{appsv1.PodIndexLabel: ordinal},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "worker", Controller: &controller}},
	}, name, "worker", "n1", ready(), says("latency", yes))
}

// claimOf is the claim of a pod.
func (b *bench) claimOf(pod string) *resourcev1.ResourceClaim {
	b.Helper()
	var c resourcev1.ResourceClaim
	b.must(b.r.Get(context.Background(), key(pod+"-ports"), &c))
	return &c
}

// has fails unless the claims have these instances: "pod=instance".
func (b *bench) has(c *v1alpha1.Chain, want ...string) {
	b.Helper()
	var got []string
	for _, i := range c.Status.Instances {
		got = append(got, strings.TrimSuffix(i.Claim, "-ports")+"="+i.Function)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		b.Errorf("instances %v, want %v", got, want)
	}
}

// The links of instances without a pod are idle, and nothing waits for them.
func TestEachPodGetsAnInstance(t *testing.T) {
	b := newWorkers(t, 3)
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link w-0: no pod has worker-0.hub")
	if c.Status.Ready != "0/1" {
		t.Errorf("without workers, %s links are ready", c.Status.Ready)
	}
	b.newWorker("a")
	b.newWorker("b")
	c = b.reconcile()
	b.has(c, "a=worker-0", "b=worker-1")
	b.wants(c, v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
	b.wants(c, v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, "")
	if c.Status.Ready != "2/2" || c.Status.Verdict != "2 met" {
		t.Errorf("%s links are ready, %s", c.Status.Ready, c.Status.Verdict)
	}
	for i, l := range c.Status.Links {
		if idle := i == 2; l.Idle != idle || (len(l.Requirements) == 0) != idle || l.Ends[0].Pod != "hub" || (l.Ends[1].Pod == "") != idle {
			t.Errorf("link %+v", l)
		}
	}
}

func TestAClaimKeepsItsInstance(t *testing.T) {
	b := newWorkers(t, 2)
	for _, name := range []string{"a", "b", "c"} {
		b.newWorker(name)
	}
	c := b.reconcile()
	b.has(c, "a=worker-0", "b=worker-1")
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "the pod c waits for an instance of worker: each of them has a pod")
	b.must(b.r.Delete(context.Background(), b.claimOf("a")))
	b.has(b.reconcile(), "c=worker-0", "b=worker-1")

	b.change(workers(1)) // the pod that is one too many is not another one
	b.has(b.reconcile(), "c=worker-0", "b=worker-1")
	b.change("{}")
	b.has(b.reconcile(), "c=worker-0", "b=worker-1")
}

func TestAPodOfAStatefulSetHasItsOrdinal(t *testing.T) {
	b := newWorkers(t, 3)
	b.newMember("worker-2", "2")
	b.newMember("worker-2z", "2")
	b.newMember("worker-7", "7")
	b.newWorker("a")
	c := b.reconcile()
	b.has(c, "a=worker-0", "worker-2=worker-2")
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "the pod worker-2z waits for an instance of worker: another pod still has worker-2")
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "its ordinal is 7, and the chain has no worker-7")
	b.must(b.r.Delete(context.Background(), b.claimOf("worker-2")))
	b.has(b.reconcile(), "a=worker-0", "worker-2z=worker-2")
}

// A chain that was deleted and created again has pods that nodes have prepared.
func TestANewChainKnowsPreparedInstances(t *testing.T) {
	b := newWorkers(t, 3)
	b.newWorker("a")
	b.newWorker("b")
	for pod, function := range map[string]string{"a": "worker-2", "b": "worker-0"} {
		claim := b.claimOf(pod)
		p := parametersOf(claim, function, "hub")
		claim.Status.Devices[1].NetworkData = &resourcev1.NetworkDeviceData{HardwareAddress: string(p.Link.Ends[p.End()].MAC)}
		b.must(b.r.Status().Update(context.Background(), claim))
	}
	b.newWorker("c")
	b.has(b.reconcile(), "b=worker-0", "c=worker-1", "a=worker-2")
}

// Two operators, or one with an old cache, must not give an instance twice.
func TestAnOldChainGivesNoInstance(t *testing.T) {
	b := newWorkers(t, 3)
	old := b.reconcile()
	b.newWorker("b")
	b.has(b.reconcile(), "b=worker-0")
	b.newWorker("a")
	if err := b.r.reconcile(context.Background(), old); !apierrors.IsConflict(err) {
		t.Errorf("an operator with an old chain wrote its status: %v", err)
	}
	b.has(b.reconcile(), "b=worker-0", "a=worker-1")
}

// A claim that the cache has not seen yet keeps its instance.
func TestACacheThatIsBehindFreesNoInstance(t *testing.T) {
	b := newWorkers(t, 3)
	b.newWorker("a")
	c := b.reconcile()
	kept, err := b.r.kept(context.Background(), c, nil)
	if err != nil || len(kept) != 1 {
		t.Errorf("kept %v: %v", kept, err)
	}
	b.must(b.r.Delete(context.Background(), b.claimOf("a")))
	if kept, err = b.r.kept(context.Background(), c, nil); err != nil || len(kept) != 0 {
		t.Errorf("kept %v: %v", kept, err)
	}
	other := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "a-ports", Namespace: "ran"}}
	b.must(b.r.Create(context.Background(), other))
	if kept, err = b.r.kept(context.Background(), c, nil); err != nil || len(kept) != 0 {
		t.Errorf("kept %v: %v", kept, err)
	}
}

// Anyone may put our labels on a claim, but only our template has parameters.
func TestAForgedClaimGetsNoInstance(t *testing.T) {
	b := newWorkers(t, 3)
	b.newWorker("a")
	claim := b.claimOf("a")
	claim.Spec.Devices.Config = nil
	claim.Labels[v1alpha1.LabelFunction] = "worker-0"
	b.must(b.r.Update(context.Background(), claim))
	c := b.reconcile()
	b.has(c)
	if c.Status.Links[0].Ends[1].Pod != "" {
		t.Errorf("a forged claim counts: %+v", c.Status.Links[0])
	}
}

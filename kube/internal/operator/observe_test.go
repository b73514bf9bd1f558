// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ran", Name: name}
}

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

// report replaces what the node says of a pod's port.
func (b *bench) report(pod string, conditions ...metav1.Condition) {
	b.Helper()
	var c resourcev1.ResourceClaim
	b.must(b.r.Get(context.Background(), key(pod+"-ports"), &c))
	c.Status.Devices[1].Conditions = conditions
	b.must(b.r.Status().Update(context.Background(), &c))
	b.writes = nil
}

func TestPodsComeAndGo(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: no pod has du.f1u")
	b.newPod("du-1", "du", "n1")
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: the node n1 has not prepared du.f1u")
	refused := says(v1alpha1.ConditionReady, no)
	refused.Message = "the broker does not answer"
	b.report("du-1", refused)
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: du.f1u: the broker does not answer")
	b.told()

	b.report("du-1", ready(), says("latency", yes), says("packet_loss_ratio", yes))
	b.report("cu-1", ready(), says("latency", yes), says("packet_loss_ratio", unknown))
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "every link has its pods")
	b.wants(c, v1alpha1.ConditionMet, unknown, v1alpha1.ReasonNotMeasurable, "link f1u: packet_loss_ratio: cu.f1u: 12µs")
	if got := fmt.Sprint(c.Status.Links[0].Ends); got != "[{cu f1u cu-1 n1  <nil>} {du f1u du-1 n1  <nil>}]" || c.Status.Ready != "1/1" || c.Status.Verdict != "1 met, 1 unknown" {
		t.Errorf("ends %s, status %+v", got, c.Status)
	}

	b.report("cu-1", ready(), says("latency", yes), says("packet_loss_ratio", yes))
	b.wants(b.reconcile(), v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, "every requirement is met")
	if got := b.told(); got != "Normal Met every requirement is met" {
		t.Errorf("events: %s", got)
	}
	b.report("du-1", ready(), says("latency", no), says("packet_loss_ratio", yes))
	b.wants(b.reconcile(), v1alpha1.ConditionMet, no, v1alpha1.ReasonMissed, "link f1u: latency: du.f1u: 12µs and 1ms are given")
	if got := b.told(); got != "Warning Missed link f1u: latency: du.f1u: 12µs and 1ms are given" {
		t.Errorf("events: %s", got)
	}

	worse := says("latency", no)
	worse.Message = "13µs and 1ms are given"
	b.report("du-1", ready(), worse, says("packet_loss_ratio", yes))
	b.wants(b.reconcile(), v1alpha1.ConditionMet, no, v1alpha1.ReasonMissed, "13µs")
	if got := b.told(); got != "" {
		t.Errorf("another figure is an event: %s", got)
	}

	var pod corev1.Pod
	b.must(b.r.Get(context.Background(), key("du-1"), &pod))
	b.must(b.r.Delete(context.Background(), &pod))
	c = b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "no pod has du.f1u")
	b.wants(c, v1alpha1.ConditionMet, unknown, v1alpha1.ReasonNotMeasured, "du.f1u: required: ≤ 1ms at p99; because: no figures yet")
	if c.Status.Verdict != "2 unknown" {
		t.Errorf("verdict %s", c.Status.Verdict)
	}
}

// A port that somebody has changed makes the chain not ready, and its message says what is wrong.
func TestAChangedPortMakesTheChainNotReady(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.newPod("du-1", "du", "n1", ready())
	b.wants(b.reconcile(), v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
	changed := ready()
	changed.Status, changed.Reason, changed.Message = no, v1alpha1.ReasonChanged, "the pod's interface f1u is down"
	b.report("du-1", changed)
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonChanged, "f1u: du.f1u: the pod's interface f1u is down")
	failed := ready()
	failed.Status, failed.Reason, failed.Message = no, "BrokerError", "the broker does not answer"
	b.report("cu-1", failed)
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "f1u: cu.f1u: the broker does not answer; du.f1u: the pod's interface f1u is down")
	b.report("cu-1", ready())
	b.report("du-1", ready())
	b.wants(b.reconcile(), v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
}

func TestUnchangedConditionsKeepTheirTime(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	c := b.reconcile()
	long := metav1.NewTime(time.Unix(1000, 0))
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = long
	}
	c.Status.Links[0].Requirements[0].LastTransitionTime = long
	b.must(b.r.Status().Update(context.Background(), c))
	b.newPod("cu-1", "cu", "n1", ready())
	c = b.reconcile()
	for _, one := range append(c.Status.Conditions, c.Status.Links[0].Requirements[0]) {
		if !one.LastTransitionTime.Equal(&long) {
			t.Errorf("%s: %v", one.Type, one.LastTransitionTime)
		}
	}
}

func TestPodsOnDifferentNodes(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"), newNode("n2"))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.newPod("du-1", "du", "n2", ready())
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting,
		"its ends are on different nodes (n1, n2), and it cannot cross: dray-net does not run on n1; or keep its pods on one node by podAffinity")
}

// Only memory of one node has traffic classes: the status says why the link cannot cross. Pods keep their queues.
func TestTrafficClassesStayOnOneNode(t *testing.T) {
	queues := func(inv *inventory.Inventory) { inv.Transports[0].Caps.PortQueues = true }
	classes := func(limit string) string {
		return strings.Replace(chainSpec(easy), `"requires"`, `"qos":{"qdisc":"prio","classes":[{"name":"a","child":{"qdisc":"pfifo","limit":`+limit+`}}]},"requires"`, 1)
	}
	b := newBench(t, newChain(classes("100")), withNetwork(newNode("n1", queues, withVxlan), 1600), withNetwork(newNode("n2", queues, withVxlan), 1600))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.newPod("du-1", "du", "n2", ready())
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting,
		"its ends are on different nodes (n1, n2), and it cannot cross: between nodes a port has no qdisc prio with classes, but at most a token bucket: leave out qos, or write max_bitrate in its place; or keep its pods on one node by podAffinity")

	b = newBench(t, newChain(classes("100")), newNode("n1", queues))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.newPod("du-1", "du", "n1", ready())
	b.wants(b.reconcile(), v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
	b.change(classes("200"))
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "the pod cu-1 has its ports by an earlier plan: replace the pod")
}

func TestALinkBetweenNodes(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), withNetwork(newNode("n1", withVxlan), 1600), withNetwork(newNode("n2", withVxlan), 1600))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.newPod("du-1", "du", "n2", ready())
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "the node n1 has no tunnel for cu.f1u yet; the node n2 has no tunnel for du.f1u yet")
	if got := c.Status.Links[0].Transport; got != "vxlan" {
		t.Errorf("transport %s", got)
	}
	b.receives("cu-1", `{"address":"10.0.0.1","vni":7}`)
	b.receives("du-1", `{"address":"::1","vni":8}`)
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: the node n2 has no tunnel for du.f1u yet")
	b.receives("du-1", `{"address":"10.0.0.2","vni":8}`)
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting,
		"the node n1 does not send from cu.f1u to the other node yet; the node n2 does not send from du.f1u to the other node yet")
	b.receives("cu-1", `{"address":"10.0.0.1","vni":7,"peer":{"address":"10.0.0.2","vni":8}}`)
	b.receives("du-1", `{"address":"10.0.0.2","vni":8,"peer":{"address":"10.0.0.1","vni":6}}`) // before n1 was booted
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: the node n2 does not send from du.f1u")
	b.receives("du-1", `{"address":"10.0.0.2","vni":8,"peer":{"address":"10.0.0.1","vni":7}}`)
	c = b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "every link has its pods")
	ends := c.Status.Links[0].Ends
	if *ends[0].Tunnel != (v1alpha1.Tunnel{Address: "10.0.0.1", VNI: 7}) || *ends[1].Tunnel != (v1alpha1.Tunnel{Address: "10.0.0.2", VNI: 8}) {
		t.Errorf("tunnels %+v, %+v", ends[0].Tunnel, ends[1].Tunnel)
	}
}

func TestALinkTooLargeForTheNetwork(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), withNetwork(newNode("n1", withVxlan), 1500), withNetwork(newNode("n2", withVxlan), 1500))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.newPod("du-1", "du", "n2", ready())
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "and it cannot cross: link f1u: mtu 1500: no transport can do this; the nearest is vxlan, which carries packets of at most 1450 bytes over an underlay with mtu 1500")
}

func TestPodsOfAnEarlierPlan(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.reconcile()
	good := []metav1.Condition{ready(), says("latency", yes), says("packet_loss_ratio", yes)}
	b.newPod("cu-1", "cu", "n1", good...)
	b.newPod("du-1", "du", "n1", good...)
	b.wants(b.reconcile(), v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, "")
	b.change(strings.ReplaceAll(chainSpec(easy), `"native"`, `"native","mtu":1600`))
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "link f1u: the pod cu-1 has its ports by an earlier plan: replace the pod; the pod du-1")
	b.wants(c, v1alpha1.ConditionMet, unknown, v1alpha1.ReasonNotMeasured, "no figures yet")
	b.newPod("cu-2", "cu", "n1", good...)
	b.newPod("du-2", "du", "n1", good...)
	b.wants(b.reconcile(), v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
}

// TestLimitsOfRunningPods: other limits leave pods as they are, and only verdicts by these
// limits count.
func TestLimitsOfRunningPods(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	by := func(generation int64, latency metav1.ConditionStatus) []metav1.Condition {
		all := []metav1.Condition{ready(), says("latency", latency), says("packet_loss_ratio", yes)}
		for i := range all {
			all[i].ObservedGeneration = generation
		}
		return all
	}
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", by(1, no)...)
	b.newPod("du-1", "du", "n1", by(0, yes)...) // of a node that has not heard of the chain
	b.wants(b.reconcile(), v1alpha1.ConditionMet, no, v1alpha1.ReasonMissed, "cu.f1u")
	b.change(chainSpec(strings.Replace(easy, "1ms", "2ms", 1)))
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
	b.wants(c, v1alpha1.ConditionMet, unknown, v1alpha1.ReasonNotMeasured, "cu.f1u: required: ≤ 2ms at p99; because: no figures yet")
	b.report("cu-1", by(2, yes)...)
	b.wants(b.reconcile(), v1alpha1.ConditionMet, unknown, v1alpha1.ReasonNotMeasured, "du.f1u: required")
	b.report("du-1", by(2, yes)...)
	b.wants(b.reconcile(), v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, "")
	b.change(strings.Replace(chainSpec(strings.Replace(easy, "1ms", "2ms", 1)), `"functions"`, `"policy":{"on_infeasible":"warn"},"functions"`, 1))
	c = b.reconcile()
	if b.wants(c, v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, ""); c.Status.Links[0].Limits.Generation != 2 {
		t.Errorf("limits that stayed: %+v", c.Status.Links[0].Limits)
	}
}

// TestOneClaimOfSeveralCounts: during a rollout, a function has an old and a new claim.
func TestOneClaimOfSeveralCounts(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }
	made := func(name string, created int64, change func(*resourcev1.ResourceClaim)) claim {
		c := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(created), Labels: map[string]string{v1alpha1.LabelFunction: "du"}}}
		c.Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference, 1)
		if change != nil {
			change(&c)
		}
		return claim{ResourceClaim: &c}
	}
	deleted := func(c *resourcev1.ResourceClaim) { t := at(9); c.DeletionTimestamp = &t }
	unused := func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = nil }
	for want, pair := range map[string][2]claim{
		"new":     {made("old", 1, nil), made("new", 2, nil)},
		"used":    {made("used", 1, nil), made("unused", 2, unused)},
		"alive":   {made("alive", 1, unused), made("deleted", 2, deleted)},
		"zz-last": {made("aa-first", 1, nil), made("zz-last", 1, nil)},
	} {
		for _, order := range [][]claim{{pair[0], pair[1]}, {pair[1], pair[0]}} {
			if got := newest(order)["du"].Name; got != want {
				t.Errorf("%s counts, want %s", got, want)
			}
		}
	}
}

// TestPodOfTheSameName: a StatefulSet makes a pod of the same name again.
func TestPodOfTheSameName(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.reconcile()
	b.newPod("cu-1", "cu", "n1", ready())
	b.newPod("du-1", "du", "n1", ready())
	var c resourcev1.ResourceClaim
	b.must(b.r.Get(context.Background(), key("du-1-ports"), &c))
	c.Status.ReservedFor[0].UID = "an earlier pod"
	b.must(b.r.Status().Update(context.Background(), &c))
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "no pod has du.f1u")
}

func TestWorstReportCounts(t *testing.T) {
	l := plan.Link{Name: "l", Ends: []plan.End{{Function: "a", Port: "p"}, {Function: "b", Port: "p"}}}
	none := metav1.ConditionStatus("")
	for _, c := range []struct{ a, b, want metav1.ConditionStatus }{
		{yes, yes, yes}, {yes, no, no}, {no, yes, no}, {unknown, no, no}, {no, unknown, no},
		{yes, unknown, unknown}, {unknown, yes, unknown}, {yes, none, unknown}, {none, yes, unknown}, {none, no, no}, {none, none, unknown},
	} {
		seen := map[portKey]port{}
		for f, status := range map[string]metav1.ConditionStatus{"a": c.a, "b": c.b} {
			if status != none {
				seen[portKey{f, "p"}] = port{conditions: []metav1.Condition{says("latency", status)}}
			}
		}
		got := judged(plan.Evidence{Requirement: "latency"}, l, &v1alpha1.Limits{}, seen)
		if got.Status != c.want || got.Message == "" || got.Reason == "" {
			t.Errorf("%q and %q: %+v, want %s", c.a, c.b, got, c.want)
		}
	}
}

func TestMetOfAChain(t *testing.T) {
	planned := decision{plan: &plan.Plan{}}
	for _, c := range []struct {
		all     []metav1.ConditionStatus
		want    metav1.ConditionStatus
		verdict string
	}{
		{nil, yes, ""},
		{[]metav1.ConditionStatus{yes, yes}, yes, "2 met"},
		{[]metav1.ConditionStatus{yes, unknown}, unknown, "1 met, 1 unknown"},
		{[]metav1.ConditionStatus{unknown, no, yes, no}, no, "1 met, 2 missed, 1 unknown"},
	} {
		all := requirements(v1alpha1.ChainStatus{})
		for _, status := range c.all {
			all = append(all, requirement{"link l", says("latency", status)})
		}
		got := met(planned, all)
		if got.Status != c.want || verdicts(all) != c.verdict || c.want == no && strings.Count(got.Message, "link l: latency") != 2 {
			t.Errorf("%v: %+v, %s", c.all, got, verdicts(all))
		}
	}
}

func TestTextsAreClipped(t *testing.T) {
	if got := clip(strings.Repeat("µ", 600), 1023); len(got) > 1023 || !strings.HasSuffix(got, "µ…") {
		t.Errorf("%d bytes, ending with %q", len(got), got[len(got)-6:])
	}
	if got := condition("x", no, "y", strings.Repeat("z", 40000)); len(got.Message) != maxMessage {
		t.Errorf("%d bytes", len(got.Message))
	}
}

func TestWatchedObjectsNameTheirChains(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.newPod("du-1", "du", "n1", ready())
	b.newPod("x-1", "x", "n1", ready()) // references a template of no chain
	var pod, other corev1.Pod
	var claim resourcev1.ResourceClaim
	b.must(b.r.Get(context.Background(), key("du-1"), &pod))
	b.must(b.r.Get(context.Background(), key("x-1"), &other))
	b.must(b.r.Get(context.Background(), key("du-1-ports"), &claim))
	ctx := context.Background()
	for name, got := range map[string]string{
		"claim": fmt.Sprint(chainOfClaim(ctx, &claim)), "pod": fmt.Sprint(b.r.chainsOfPod(ctx, &pod)), "inventory": fmt.Sprint(b.r.allChains(ctx, nil)),
	} {
		if got != "[ran/f1]" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := b.r.chainsOfPod(ctx, &other); len(got) > 0 {
		t.Errorf("a pod of no chain: %v", got)
	}
}

func TestReadyOnlyIfTrue(t *testing.T) {
	p := port{node: "n1", conditions: []metav1.Condition{ready()}}
	if !p.ready() || (port{node: "n1"}).ready() || (port{conditions: p.conditions}).ready() {
		t.Error("ready needs a node and its report")
	}
	meta.SetStatusCondition(&p.conditions, says(v1alpha1.ConditionReady, unknown))
	if p.ready() {
		t.Error("unknown is not ready")
	}
}

// A node gets dray-net after its pods: links on one node go on, and a link that has to
// cross needs new pods.
func TestPodsFromBeforeANetwork(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"), newNode("n2"))
	b.reconcile()
	good := []metav1.Condition{ready(), says("latency", yes), says("packet_loss_ratio", yes)}
	b.newPod("cu-1", "cu", "n1", good...)
	b.newPod("du-1", "du", "n1", good...)
	for _, name := range []string{"n1", "n2"} {
		var old corev1.ConfigMap
		b.must(b.r.Get(context.Background(), types.NamespacedName{Namespace: system, Name: "inventory-" + name}, &old))
		old.Data = withNetwork(newNode(name, withVxlan), 1600).Data
		b.must(b.r.Update(context.Background(), &old))
	}
	b.wants(b.reconcile(), v1alpha1.ConditionMet, yes, v1alpha1.ReasonMet, "every requirement is met")
	var du corev1.Pod
	b.must(b.r.Get(context.Background(), key("du-1"), &du))
	du.Spec.NodeName = "n2"
	b.must(b.r.Update(context.Background(), &du))
	b.wants(b.reconcile(), v1alpha1.ConditionReady, no, v1alpha1.ReasonWaiting, "the pod cu-1 has its ports from before the link could cross nodes: replace the pod")
}

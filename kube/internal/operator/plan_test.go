// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

func TestFeasibleChainGetsTemplates(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n2"), newNode("n1"))
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "on n1, n2")
	b.wants(c, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "link f1u: no pod has cu.f1u, du.f1u")
	b.wants(c, v1alpha1.ConditionMet, metav1.ConditionUnknown, v1alpha1.ReasonNotMeasured, "link f1u: latency: cu.f1u: required: ≤ 1ms at p99; because: no figures yet; link f1u: packet_loss_ratio: ")
	if c.Status.Ready != "0/1" || c.Status.Verdict != "2 unknown" || c.Status.ObservedGeneration != 1 {
		t.Errorf("status %+v", c.Status)
	}
	if got := b.told(); !strings.HasPrefix(got, "Normal Planned on n1, n2") || strings.Contains(got, "\n") {
		t.Errorf("events: %s", got)
	}
	all := b.templates()
	if len(all) != 2 {
		t.Fatalf("%d templates", len(all))
	}
	checkTemplate(t, all["f1-cu"], "cu")
	checkTemplate(t, all["f1-du"], "du")
}

// checkTemplate checks what the scheduler, the nodes and the garbage collector read.
func checkTemplate(t *testing.T, got resourcev1.ResourceClaimTemplate, function string) {
	t.Helper()
	for _, labels := range []map[string]string{got.Labels, got.Spec.Labels} {
		if labels[v1alpha1.LabelChain] != "f1" || labels[v1alpha1.LabelFunction] != function {
			t.Errorf("labels %v", labels)
		}
	}
	if o := metav1.GetControllerOf(&got); o == nil || o.UID != "chain-uid" || o.Kind != "Chain" || o.APIVersion != "drayage.io/v1alpha1" {
		t.Errorf("owner %+v", o)
	}
	d := got.Spec.Spec.Devices
	if len(d.Requests) != 1 || len(d.Config) != 1 {
		t.Fatalf("%d requests, %d configurations", len(d.Requests), len(d.Config))
	}
	r := d.Requests[0]
	ports := r.Exactly.Capacity.Requests[v1alpha1.CapacityPorts]
	if r.Name != "f1u" || r.Exactly.DeviceClassName != "ports.drayage.io" || ports.Value() != 1 {
		t.Errorf("request %+v", r)
	}
	if got, want := r.Exactly.Selectors[0].CEL.Expression, `device.attributes["ports.drayage.io"].node in ["n1", "n2"]`; got != want {
		t.Errorf("selector %s, want %s", got, want)
	}
	if o := d.Config[0]; o.Requests[0] != "f1u" || o.Opaque.Driver != "ports.drayage.io" {
		t.Errorf("configuration %+v", o)
	}
	p, err := v1alpha1.ParsePortParameters(d.Config[0].Opaque.Parameters.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Link.Evidence; len(e) != 2 || e[0] != (plan.Evidence{Requirement: "latency", Required: "≤ 1ms at p99"}) || p.Link.Reason != "" {
		t.Errorf("the requirements are %+v, the reason %q", e, p.Link.Reason)
	}
	if p.Chain != "f1" || p.Function != function || p.Link.Transport != "shm" || !p.Link.Ends[p.End()].IP.IsValid() || p.Link.Requires.Latency == 0 {
		t.Errorf("parameters %+v", p)
	}
}

func TestSecondReconcileWritesNothing(t *testing.T) {
	for name, spec := range map[string]string{"planned": chainSpec(easy), "infeasible": chainSpec(`"latency":"1ns"`), "invalid": `{"functions":[]}`} {
		b := newBench(t, newChain(spec), newNode("n1"))
		b.reconcile()
		b.told()
		b.writes = nil
		if b.reconcile(); len(b.writes) > 0 || b.told() != "" {
			t.Errorf("%s: %v", name, b.writes)
		}
	}
}

func TestInfeasibleChainHasNoTemplates(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"), newNode("n2"))
	b.change(chainSpec(`"latency":"1ns"`))
	c := b.reconcile()
	const why = "n1, n2: link f1u: latency ≤ 1ns at p99: "
	b.wants(c, v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonInfeasible, why)
	b.wants(c, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInfeasible, "not planned")
	b.wants(c, v1alpha1.ConditionMet, metav1.ConditionUnknown, v1alpha1.ReasonInfeasible, "not planned")
	if len(b.templates()) != 0 || c.Status.Links != nil || c.Status.Ready != "" || c.Status.Verdict != "" {
		t.Errorf("templates %v, status %+v", b.templates(), c.Status)
	}
	if got := b.told(); !strings.HasPrefix(got, "Warning Infeasible "+why) {
		t.Errorf("events: %s", got)
	}
	b.change(chainSpec(easy))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "on n1, n2")
	if len(b.templates()) != 2 {
		t.Error("the templates are not back")
	}
}

func TestPolicyWarnPlansAnyway(t *testing.T) {
	spec := strings.Replace(chainSpec(`"latency":"1ns"`), "{", `{"policy":{"on_infeasible":"warn"},`, 1)
	b := newBench(t, newChain(spec), newNode("n1"))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "on n1; warning: link f1u: latency ≤ 1ns")
}

func TestNoNode(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonNoNode, "is the DaemonSet dray-node running?")
	b.must(b.r.Create(context.Background(), newNode("n1")))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "on n1")
}

// TestForeignInventories ignores what is not a node's: another namespace, no label.
func TestForeignInventories(t *testing.T) {
	elsewhere, unlabelled := newNode("n1"), newNode("n2")
	elsewhere.Namespace = "ran"
	unlabelled.Labels = nil
	b := newBench(t, newChain(chainSpec(easy)), elsewhere, unlabelled)
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonNoNode, "")
}

func TestInvalidSpec(t *testing.T) {
	spec := strings.Replace(chainSpec(easy), `"face":"native"`, `"face":"native","mtu":9000`, 1)
	b := newBench(t, newChain(spec), newNode("n1"))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonInvalid,
		"spec.functions[1].ports[0]: mtu 1500 of du.f1u differs from mtu 9000 of cu.f1u on the same link; give both ports the same")
	if got := b.told(); len(b.templates()) != 0 || !strings.HasPrefix(got, "Warning Invalid spec.functions[1]") {
		t.Errorf("templates %v, events %s", b.templates(), got)
	}
}

// TestEvidenceIsNoPartOfThePlan: nodes with other figures make the same links.
func TestEvidenceIsNoPartOfThePlan(t *testing.T) {
	measured := newNode("n1", func(inv *inventory.Inventory) {
		inv.Calibration = []inventory.Calibration{{Transport: "shm", Source: "run 7", LossRatio: 1e-9,
			Latency: []inventory.LatencyPoint{{Percentile: 99, Latency: 5000}}}}
	})
	b := newBench(t, newChain(chainSpec(easy)), measured, newNode("n2"))
	b.reconcile()
	checkTemplate(t, b.templates()["f1-du"], "du")
}

// capacities is what the only request of a function's template asks of a device.
func (b *bench) capacities(function string) string {
	b.Helper()
	var all []string
	for name, q := range b.templates()["f1-"+function].Spec.Spec.Devices.Requests[0].Exactly.Capacity.Requests {
		all = append(all, fmt.Sprintf("%s %s", name, q.String()))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestPortsAskForWhatTheirLinkMustCarry: each end of a link asks for it, and nothing that no
// requirement says.
func TestPortsAskForWhatTheirLinkMustCarry(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	for requires, want := range map[string]string{
		easy:                      "ports 1",
		`"packet_rate":"100kpps"`: "ports 1, shmPacketRate 100k",
		`"min_bitrate":"1Gbps","packet_rate":"100kpps"`: "ports 1, shmBitrate 1G, shmPacketRate 100k",
	} {
		b.change(chainSpec(requires))
		b.reconcile()
		for _, function := range []string{"cu", "du"} {
			if got := b.capacities(function); got != want {
				t.Errorf("%s of %s: %s, want %s", function, requires, got, want)
			}
		}
	}
	b.change(strings.Replace(chainSpec(`"packet_rate":"1Gpps"`), "{", `{"policy":{"on_infeasible":"warn"},`, 1))
	b.reconcile()
	if got := b.capacities("cu"); got != "ports 1" { // it is to be measured in any case
		t.Errorf("of a chain that no node carries: %s", got)
	}
}

// TestACalibrationIsEvidence: a node is planned for by what was measured on it.
func TestACalibrationIsEvidence(t *testing.T) {
	measured := newNode("n1", func(inv *inventory.Inventory) {
		inv.Calibration = []inventory.Calibration{{Transport: "shm", Source: "run 7", PacketRate: 5e6}}
	})
	b := newBench(t, newChain(chainSpec(`"packet_rate":"5Mpps"`)), measured, newNode("n2"))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "on n1; not on n2: link f1u: packet_rate ≥ 5Mpps: ")
	if got := b.capacities("cu"); got != "ports 1, shmPacketRate 5M" {
		t.Error(got)
	}
}

func TestNodesThatCannot(t *testing.T) {
	broken := newNode("n4")
	broken.Data[v1alpha1.KeyInventory] = "{"
	broken.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "n4"}}
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"), newNode("n2"), newNode("n3", withoutShm), broken)
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "on n1, n2; ")
	b.wants(c, v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "not on n3: link f1u: ")
	b.wants(c, v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "n4: its inventory cannot be read: ")
	checkTemplate(t, b.templates()["f1-du"], "du")
}

// TestLargestGroupOfNodesWins leaves out a node that would make the link differently.
func TestLargestGroupOfNodesWins(t *testing.T) {
	other := func(inv *inventory.Inventory) { inv.Transports[0].Name = "memif" }
	b := newBench(t, newChain(chainSpec(easy)), newNode("n0", other), newNode("n1"), newNode("n2"))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "not on n0: its links would differ from those on n1")
	checkTemplate(t, b.templates()["f1-du"], "du")
}

// TestNodesHaveTheNamesOfKubernetes: a host may have another name than its node.
func TestNodesHaveTheNamesOfKubernetes(t *testing.T) {
	one, two := newNode("localhost"), newNode("n2")
	one.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "n1"}}
	b := newBench(t, newChain(chainSpec(easy)), one, two)
	b.reconcile()
	checkTemplate(t, b.templates()["f1-du"], "du")
}

func TestChangedPlanReplacesTemplates(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.reconcile()
	before := b.templates()
	b.change(strings.ReplaceAll(chainSpec(easy), `"face":"native"`, `"face":"native","mtu":9000`))
	b.reconcile()
	for name, now := range b.templates() {
		p, err := v1alpha1.ParsePortParameters(now.Spec.Spec.Devices.Config[0].Opaque.Parameters.Raw)
		if err != nil || p.Link.MTU != 9000 || now.UID == before[name].UID {
			t.Errorf("%s: error %v, link %+v, was %s and is %s", name, err, p.Link, before[name].UID, now.UID)
		}
	}
	if got := fmt.Sprint(b.writes); got != "[delete *v1.ResourceClaimTemplate f1-cu create *v1.ResourceClaimTemplate f1-cu delete *v1.ResourceClaimTemplate f1-du create *v1.ResourceClaimTemplate f1-du update status *v1alpha1.Chain f1]" {
		t.Errorf("writes: %s", got)
	}
}

func TestTemplatesOfRemovedFunctionsGo(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.change(strings.ReplaceAll(chainSpec(easy), `du`, `ru`))
	b.reconcile()
	if all := b.templates(); len(all) != 2 || all["f1-ru"].Name == "" || all["f1-cu"].Name == "" {
		t.Errorf("templates %v", all)
	}
}

func TestTemplateOfSomethingElse(t *testing.T) {
	foreign := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "f1-du", Namespace: "ran"}}
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"), foreign)
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonInvalid,
		"the ResourceClaimTemplate f1-du belongs to something else: delete it, or rename the chain or the function")
	if got := b.templates()["f1-du"]; got.OwnerReferences != nil {
		t.Errorf("it was taken over: %+v", got)
	}
}

// TestLabelledTemplateOfSomethingElse: a label alone does not make a template the chain's.
func TestLabelledTemplateOfSomethingElse(t *testing.T) {
	foreign := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "ran", Labels: map[string]string{v1alpha1.LabelChain: "f1"}}}
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"), foreign)
	b.reconcile()
	if all := b.templates(); len(all) != 3 {
		t.Errorf("templates %v", all)
	}
}

// TestHiddenTemplate: without its labels, the cache leaves out a template of the chain.
func TestHiddenTemplate(t *testing.T) {
	b := newBench(t, newChain(chainSpec(easy)), newNode("n1"))
	b.reconcile()
	hidden := b.templates()["f1-du"]
	hidden.Labels = nil
	b.must(b.r.Update(context.Background(), &hidden))
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, "on n1")
	if got := b.templates()["f1-du"].Labels[v1alpha1.LabelChain]; got != "f1" {
		t.Errorf("its label is %q", got)
	}
}

func TestDeletedChainIsLeftAlone(t *testing.T) {
	c := newChain(chainSpec(easy))
	now := metav1.Now()
	c.DeletionTimestamp, c.Finalizers = &now, []string{"example.org/keep"}
	b := newBench(t, c, newNode("n1"))
	if b.reconcile(); len(b.writes) > 0 {
		t.Errorf("writes: %v", b.writes)
	}
}

func TestPodsThatWaitAreTold(t *testing.T) {
	b := newBench(t, newChain(chainSpec(`"latency":"1ns"`)), newNode("n1"))
	b.newPod("du-1", "du", "")
	b.newPod("cu-1", "cu", "n1") // has its claim since before
	b.reconcile()
	const want = "Warning Infeasible the chain f1 is not planned, so this pod has no ports: n1: link f1u: latency ≤ 1ns"
	if got := b.told(); strings.Count(got, want) != 1 {
		t.Errorf("events: %s", got)
	}
	if b.reconcile(); b.told() != "" {
		t.Error("the pod was told twice")
	}
	b.newPod("du-2", "du", "")
	b.reconcile()
	if got := b.told(); strings.Count(got, want) != 1 {
		t.Errorf("events for another pod: %s", got)
	}
	b.change(chainSpec(easy))
	if b.reconcile(); strings.Contains(b.told(), "Warning") || len(b.r.told.notes) > 0 {
		t.Error("pods of a planned chain are told something")
	}
}

func TestSelectorFitsTheLimitOfTheAPI(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("node-%040d", i))
	}
	text := selector(names)
	if len(text) > resourcev1.CELSelectorExpressionMaxLength || len(text) < resourcev1.CELSelectorExpressionMaxLength-256 || !strings.HasSuffix(text, `"]`) {
		t.Errorf("%d bytes, ending with %s", len(text), text[len(text)-60:])
	}
}

func TestSlimPodsKeepWhatIsRead(t *testing.T) {
	b := newBench(t)
	b.newPod("du-1", "du", "n1")
	var pod corev1.Pod
	b.must(b.r.Get(context.Background(), key("du-1"), &pod))
	pod.Spec.Containers = []corev1.Container{{Name: "large"}}
	small, err := slim(&pod)
	if err != nil {
		t.Fatal(err)
	}
	got := small.(*corev1.Pod)
	if got.UID != pod.UID || got.Spec.NodeName != "n1" || waits(got, "f1-du") || len(templatesOfPod(got)) != 1 || got.Spec.Containers != nil {
		t.Errorf("%+v", got)
	}
}

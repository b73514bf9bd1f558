// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

const system = "dray-system"

// bench is a reconciler on a cluster in memory.
type bench struct {
	*testing.T
	r      *Reconciler
	events *events.FakeRecorder
	writes []string
	made   int // objects created
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, events: events.NewFakeRecorder(100)}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Chain{}, &resourcev1.ResourceClaim{})
	for object, index := range indices() {
		builder = builder.WithIndex(object, indexTemplate, index)
	}
	note := func(verb string, o client.Object) {
		b.writes = append(b.writes, fmt.Sprintf("%s %T %s", verb, o, o.GetName()))
	}
	c := builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			note("create", o)
			b.made++
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", b.made)))
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			note("delete", o)
			return c.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			note("update "+sub, o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}).Build()
	b.r = &Reconciler{Client: c, Uncached: c, Events: b.events, Namespace: system}
	return b
}

// reconcile reconciles the chain f1, and returns it.
func (b *bench) reconcile() *v1alpha1.Chain {
	b.Helper()
	key := types.NamespacedName{Namespace: "ran", Name: "f1"}
	for range 5 {
		result, err := b.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil {
			b.Fatal(err)
		}
		if result.RequeueAfter == 0 {
			break
		}
	}
	var c v1alpha1.Chain
	if err := b.r.Get(context.Background(), key, &c); err != nil {
		b.Fatal(err)
	}
	return &c
}

// told returns the events since the last call.
func (b *bench) told() string {
	var all []string
	for {
		select {
		case e := <-b.events.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// templates are the templates in the namespace, by name.
func (b *bench) templates() map[string]resourcev1.ResourceClaimTemplate {
	b.Helper()
	var list resourcev1.ResourceClaimTemplateList
	if err := b.r.List(context.Background(), &list, client.InNamespace("ran")); err != nil {
		b.Fatal(err)
	}
	all := map[string]resourcev1.ResourceClaimTemplate{}
	for _, t := range list.Items {
		all[t.Name] = t
	}
	return all
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// wants fails unless the chain has the condition with that status, reason and text.
func (b *bench) wants(c *v1alpha1.Chain, kind string, status metav1.ConditionStatus, reason, text string) {
	b.Helper()
	got := meta.FindStatusCondition(c.Status.Conditions, kind)
	if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, text) || got.ObservedGeneration != c.Generation {
		b.Errorf("condition %s is %+v, want %s %s with %q", kind, got, status, reason, text)
	}
}

// chainSpec is two functions and the link between them, with requirements.
func chainSpec(requires string) string {
	return `{"functions":[{"name":"cu","ports":[{"name":"f1u","face":"native"}]},{"name":"du","ports":[{"name":"f1u","face":"native"}]}],
	  "links":[{"name":"f1u","ends":["cu.f1u","du.f1u"],"requires":{` + requires + `}}]}`
}

const easy = `"latency":"1ms","packet_loss_ratio":0.0001`

func newChain(spec string) *v1alpha1.Chain {
	return &v1alpha1.Chain{
		ObjectMeta: metav1.ObjectMeta{Name: "f1", Namespace: "ran", UID: "chain-uid", Generation: 1},
		Spec:       runtime.RawExtension{Raw: []byte(spec)},
	}
}

// change gives the chain another spec, and so another generation.
func (b *bench) change(spec string) {
	b.Helper()
	c := b.reconcile()
	c.Spec.Raw = []byte(spec)
	c.Generation++
	b.must(b.r.Update(context.Background(), c))
	b.told()
	b.writes = nil
}

// newNode is the inventory of a node, on which the transport shm works.
func newNode(name string, change ...func(*inventory.Inventory)) *corev1.ConfigMap {
	inv := inventory.Inventory{
		Host: inventory.Host{Hostname: name, CPUs: []int{0, 1}, NUMANodes: 1, MemoryTotal: 8 << 30, MemoryFree: 8 << 30},
		Transports: []inventory.Transport{{Item: inventory.Item{Name: "shm", Status: inventory.OK},
			Caps: inventory.Caps{Faces: []string{"native", "dpdk"}, Isolation: "link", MinEnds: 2, MaxEnds: 2, MaxMTU: 65535, Rank: 5, Privileges: "none"}}},
	}
	for _, c := range change {
		c(&inv)
	}
	data, err := json.Marshal(inv)
	if err != nil {
		panic(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "inventory-" + name, Namespace: system, Labels: map[string]string{v1alpha1.LabelInventory: "true"}},
		Data:       map[string]string{v1alpha1.KeyInventory: string(data)},
	}
}

func withoutShm(inv *inventory.Inventory) {
	inv.Transports[0].Status, inv.Transports[0].Reason = inventory.Missing, "no memfd"
}

// withBridge adds a transport that shares no memory.
func withBridge(inv *inventory.Inventory) {
	bridge := inventory.Transport{Item: inventory.Item{Name: "bridge", Status: inventory.OK}, Caps: inv.Transports[0].Caps}
	bridge.Caps.Faces = append([]string{"netdev"}, bridge.Caps.Faces...)
	bridge.Caps.Isolation, bridge.Caps.Rank = "no-shared-memory", 20
	inv.Transports = append(inv.Transports, bridge)
}

func withVxlan(inv *inventory.Inventory) {
	inv.Transports = append(inv.Transports, inventory.Transport{Item: inventory.Item{Name: "vxlan", Status: inventory.OK}, Caps: vxlan.New().Caps()})
	caps := &inv.Transports[1].Caps
	caps.Faces = append(slices.Clone(caps.Faces), "native")
}

// withNetwork adds what dray-net offers on a node.
func withNetwork(node *corev1.ConfigMap, mtu int) *corev1.ConfigMap {
	node.Data[v1alpha1.KeyNetwork] = fmt.Sprintf(`{"addr":"10.0.0.9","mtu":%d}`, mtu)
	return node
}

// receives is where the node of a pod receives its link.
func (b *bench) receives(pod, data string) {
	b.Helper()
	var c resourcev1.ResourceClaim
	b.must(b.r.Get(context.Background(), key(pod+"-ports"), &c))
	c.Status.Devices[1].Data = &runtime.RawExtension{Raw: []byte(data)}
	b.must(b.r.Status().Update(context.Background(), &c))
}

// newPod is a pod on a node with a claim for a function.
func (b *bench) newPod(name, function, node string, conditions ...metav1.Condition) {
	b.Helper()
	b.newPodOf(nil, name, function, node, conditions...)
}

// newPodOf is the same for a pod with an owner and its labels.
func (b *bench) newPodOf(owner *metav1.ObjectMeta, name, function, node string, conditions ...metav1.Condition) {
	b.Helper()
	ctx := context.Background()
	template, claim := "f1-"+function, name+"-ports"
	meta := metav1.ObjectMeta{Name: name, Namespace: "ran"}
	if owner != nil {
		meta.Labels, meta.OwnerReferences = owner.Labels, owner.OwnerReferences
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: node, ResourceClaims: []corev1.PodResourceClaim{{Name: "ports", ResourceClaimTemplateName: &template}}}}
	if node != "" {
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "ports", ResourceClaimName: &claim}}
	}
	b.must(b.r.Create(ctx, pod))
	if node == "" {
		return
	}
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: "ran",
		Labels: map[string]string{v1alpha1.LabelChain: "f1", v1alpha1.LabelFunction: function}}}
	c.Spec = b.templates()[template].Spec.Spec
	b.must(b.r.Create(ctx, c))
	other, third := "another port of the node", "a third port of the node"
	c.Status = resourcev1.ResourceClaimStatus{
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: pod.UID}},
		Allocation:  &resourcev1.AllocationResult{},
	}
	report := func(share string, conditions ...metav1.Condition) {
		c.Status.Devices = append(c.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: v1alpha1.Driver, Pool: node, Device: v1alpha1.Device, ShareID: &share, Conditions: conditions})
	}
	report(other, says("latency", metav1.ConditionFalse))
	for _, r := range c.Spec.Devices.Requests {
		share, results := types.UID("share-"+name+r.Name), &c.Status.Allocation.Devices.Results
		*results = append(*results, resourcev1.DeviceRequestAllocationResult{Request: r.Name, Driver: v1alpha1.Driver, Pool: node, Device: v1alpha1.Device, ShareID: &share})
		report(string(share), conditions...)
	}
	report(third, says("latency", metav1.ConditionFalse))
	b.must(b.r.Status().Update(ctx, c))
	b.writes = nil
}

// says is a condition that a node reports.
func says(kind string, status metav1.ConditionStatus) metav1.Condition {
	reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: v1alpha1.ReasonMet, metav1.ConditionFalse: v1alpha1.ReasonMissed, metav1.ConditionUnknown: v1alpha1.ReasonNotMeasurable}[status]
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "12µs and 1ms are given", LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}
}

func ready() metav1.Condition {
	c := says(v1alpha1.ConditionReady, metav1.ConditionTrue)
	c.Message = "the port is served"
	return c
}

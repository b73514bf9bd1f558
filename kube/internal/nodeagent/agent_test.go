// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/meet"
)

// fixture is the agent of node n1, with a real broker and a pretended API server.
type fixture struct {
	t      *testing.T
	agent  *Agent
	client *fake.Clientset
	broker *broker.Client
	stop   func() // ends the broker that runs
}

func newFixture(t *testing.T, stopped ...bool) *fixture {
	t.Helper()
	// A socket's path has no more than about 100 bytes in a link's status.
	dir, err := os.MkdirTemp("", "dray-agent-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fixture{t: t, client: fake.NewClientset()}
	f.agent, err = New(Options{
		Node: "n1", Namespace: "dray-system", StateDir: filepath.Join(dir, "state"), CDIDir: filepath.Join(dir, "cdi"),
		Client: f.client, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	if len(stopped) == 0 {
		f.serve()
	}
	return f
}

// serve runs the node's broker until the end of the test.
func (f *fixture) serve() {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- broker.Serve(ctx, broker.Options{Dir: f.agent.links.dir, Ready: func() { close(ready) }})
	}()
	<-ready
	met := make(chan error, 1)
	go func() { met <- meet.Serve(ctx, f.agent.links.meet, slog.New(slog.DiscardHandler)) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		must(f.t, errors.Join(<-done, <-met))
	})
	f.t.Cleanup(f.stop)
	err := meet.ErrAbsent
	for errors.Is(err, meet.ErrAbsent) {
		_, err = meet.Apply(ctx, f.agent.links.meet, nil)
	}
	must(f.t, err)
	f.broker, err = broker.Dial(f.agent.links.dir)
	must(f.t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func f1u() plan.Link {
	end := func(function, mac, ip string) plan.End {
		return plan.End{Function: function, Port: "f1u", Face: chain.FaceNative, Backend: plan.BackendShm, MTU: 1600, Queues: 1,
			MAC: chain.MAC(mac), IP: netip.MustParsePrefix(ip)}
	}
	return plan.Link{Name: "f1u", Transport: "shm", MTU: 1600,
		Ends:     []plan.End{end("cu-up", "02:00:00:00:00:01", "10.38.0.1/24"), end("du", "02:00:00:00:00:02", "10.38.0.2/24")},
		Evidence: []plan.Evidence{{Requirement: "latency", Required: "≤ 1.5ms at p99"}}}
}

// claim makes a running pod of a function, and its allocated claim.
func (f *fixture) claim(function string, change ...func(*corev1.Pod, *v1alpha1.PortParameters)) *resourcev1.ResourceClaim {
	f.t.Helper()
	user, name := int64(os.Getuid()), function+"-ports"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: function, Namespace: "ran", UID: types.UID("pod-" + function)},
		Spec: corev1.PodSpec{
			NodeName:        "n1",
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
			ResourceClaims:  []corev1.PodResourceClaim{{Name: "ports", ResourceClaimName: &name}},
			Containers:      []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "ports"}}}}},
		},
	}
	parameters := v1alpha1.NewPortParameters("f1", function, "f1u", f1u(), nil)
	for _, c := range change {
		c(pod, &parameters)
	}
	raw, err := json.Marshal(parameters)
	must(f.t, err)
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ran", UID: types.UID("claim-" + function)},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "f1u", Driver: v1alpha1.Driver, Pool: "n1", Device: v1alpha1.Device}},
				Config: []resourcev1.DeviceAllocationConfiguration{{
					Source:              resourcev1.AllocationConfigSourceClaim,
					Requests:            []string{"f1u"},
					DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: v1alpha1.Driver, Parameters: runtime.RawExtension{Raw: raw}}},
				}},
			}},
		},
	}
	must(f.t, f.client.Tracker().Add(pod))
	must(f.t, f.client.Tracker().Add(c))
	return c
}

// prepare prepares a claim, and returns why not.
func (f *fixture) prepare(c *resourcev1.ResourceClaim) error {
	f.t.Helper()
	results, err := f.agent.PrepareResourceClaims(context.Background(), []*resourcev1.ResourceClaim{c})
	must(f.t, err)
	r := results[c.UID]
	if r.Err == nil && (len(r.Devices) != 1 || r.Devices[0].CDIDeviceIDs[0] != "ports.drayage.io/claim="+string(c.UID)) {
		f.t.Errorf("the kubelet gets %+v", r.Devices)
	}
	return r.Err
}

// link is the broker's only link.
func (f *fixture) link() broker.LinkStatus {
	f.t.Helper()
	all, err := f.broker.Status(context.Background())
	must(f.t, err)
	if len(all) != 1 {
		f.t.Fatalf("%d links: %+v", len(all), all)
	}
	return all[0]
}

func (f *fixture) socket(c *resourcev1.ResourceClaim) string {
	return filepath.Join(f.agent.store.Ports(c.UID), "f1u")
}

// nothingLeft checks that no claim, device or link is left.
func (f *fixture) nothingLeft() {
	f.t.Helper()
	all, err := f.agent.store.List(context.Background())
	must(f.t, err)
	specs, err := f.agent.specs.list()
	must(f.t, err)
	links, err := f.broker.Status(context.Background())
	must(f.t, err)
	if len(all)+len(specs)+len(links) > 0 {
		f.t.Errorf("left: claims %+v, devices %v, links %+v", all, specs, links)
	}
}

func TestTwoPodsGetALink(t *testing.T) {
	f := newFixture(t)
	du, cu := f.claim("du"), f.claim("cu-up")
	must(t, f.prepare(du))
	first := f.link()
	if first.Name != "ran/f1/f1u" {
		t.Errorf("the link is %q", first.Name)
	}
	if info, err := os.Lstat(f.socket(du)); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the first pod's socket: %v, %v", info, err)
	}
	if _, err := os.Lstat(f.socket(cu)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a port without a pod has a socket: %v", err)
	}
	for range 2 { // the kubelet may ask again
		must(t, f.prepare(cu))
		must(t, f.prepare(du))
	}
	for _, c := range []*resourcev1.ResourceClaim{du, cu} {
		if _, err := os.Lstat(f.socket(c)); err != nil {
			t.Error(err)
		}
	}
	must(t, f.agent.unprepare(context.Background(), du.UID))
	if len(f.link().Ends) != 2 {
		t.Errorf("the port that stays: %+v", f.link())
	}
	for range 2 {
		must(t, f.agent.unprepare(context.Background(), cu.UID))
	}
	f.nothingLeft()
}

func TestTheDeviceMountsOnlyThePodsPorts(t *testing.T) {
	f := newFixture(t)
	no := false
	du, cu := f.claim("du"), f.claim("cu-up", func(p *corev1.Pod, _ *v1alpha1.PortParameters) { p.Spec.HostUsers = &no })
	for c, idmap := range map[*resourcev1.ResourceClaim]bool{du: false, cu: true} {
		must(t, f.prepare(c))
		data, err := os.ReadFile(f.agent.specs.file(c.UID))
		must(t, err)
		if want := `"hostPath": "` + f.agent.store.Ports(c.UID) + `"`; !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
		if strings.Count(string(data), "hostPath") != 1 || strings.Contains(string(data), "idmap") != idmap {
			t.Errorf("with its own users %v: %s", idmap, data)
		}
	}
}

func TestClaimsThatCannotBePrepared(t *testing.T) {
	type change = func(*corev1.Pod, *v1alpha1.PortParameters)
	other := int64(7)
	for name, c := range map[string]struct {
		change change
		why    string
	}{
		"no user":     {func(p *corev1.Pod, _ *v1alpha1.PortParameters) { p.Spec.SecurityContext = nil }, "has no runAsUser"},
		"unused":      {func(p *corev1.Pod, _ *v1alpha1.PortParameters) { p.Spec.Containers[0].Resources.Claims = nil }, "no container of pod du uses"},
		"two users":   {func(p *corev1.Pod, _ *v1alpha1.PortParameters) { addContainer(p, other) }, "a port belongs to one user"},
		"other node":  {func(p *corev1.Pod, _ *v1alpha1.PortParameters) { p.Spec.NodeName = "n2" }, "no pod of this node"},
		"other pod":   {func(p *corev1.Pod, _ *v1alpha1.PortParameters) { p.UID = "later" }, "no pod of this node"},
		"transport":   {func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Link.Transport = "vxlan" }, "nodes make only links of shm, memif, bridge or ovs-dpdk"},
		"three ends":  {func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Link.Ends = append(p.Link.Ends, plan.End{}) }, "link f1u has 3 ends: nodes make only links between two ports"},
		"foreign end": {func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Function = "ru" }, "no end of their link"},
		"no MAC":      {func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Link.Ends[0].MAC = "" }, "does not have 6 bytes"},
		"escape":      {func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Port, p.Link.Ends[1].Port = "../../x", "../../x" }, "a name has 1 to 15"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			claim := f.claim("du", func(p *corev1.Pod, v *v1alpha1.PortParameters) {
				c.change(p, v)
				if p.UID == "later" { // the claim is reserved for an earlier pod of that name
					p.UID = "pod-du-2"
				}
			})
			claim.Status.ReservedFor[0].UID = "pod-du"
			if err := f.prepare(claim); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want %q", err, c.why)
			}
			// A claim with a fault is in nobody's way.
			good := f.claim("cu-up", func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Chain = "f2" })
			must(t, f.prepare(good))
		})
	}
}

func addContainer(p *corev1.Pod, user int64) {
	second := p.Spec.Containers[0]
	second.Name, second.SecurityContext = "second", &corev1.SecurityContext{RunAsUser: &user}
	p.Spec.Containers = append(p.Spec.Containers, second)
}

func TestAChangedPlanDoesNotJoinTheOldOne(t *testing.T) {
	f := newFixture(t)
	must(t, f.prepare(f.claim("du")))
	later := f.claim("cu-up", func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Link.MTU = 9000 })
	if err := f.prepare(later); err == nil || !strings.Contains(err.Error(), "delete that pod, too") {
		t.Error(err)
	}
}

func TestAPodWaitsForItsPredecessor(t *testing.T) {
	f := newFixture(t)
	du := f.claim("du")
	must(t, f.prepare(du))
	next := f.claim("du-2", func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Function = "du" })
	done := make(chan error)
	go func() { done <- f.prepare(next) }()
	select {
	case err := <-done:
		t.Fatalf("two pods have one port: %v", err)
	case <-time.After(3 * portPause):
	}
	must(t, f.agent.unprepare(context.Background(), du.UID))
	must(t, <-done)
	if _, err := os.Lstat(f.socket(next)); err != nil {
		t.Error(err)
	}
}

// What the driver of a rival forgets: a new instance knows the claims of the old one.
func TestANewInstanceContinues(t *testing.T) {
	f := newFixture(t)
	du, cu := f.claim("du"), f.claim("cu-up")
	must(t, errors.Join(f.prepare(du), f.prepare(cu)))
	before := f.link().Generation
	old := f.agent
	var err error
	f.agent, err = New(old.o)
	must(t, err)
	f.agent.reconcile(context.Background())
	must(t, f.prepare(du))
	if after := f.link(); after.Generation != before || len(after.Ends) != 2 {
		t.Errorf("the link was touched: %+v", after)
	}
	must(t, old.unprepare(context.Background(), du.UID)) // the old instance still runs
	must(t, f.agent.unprepare(context.Background(), cu.UID))
	f.nothingLeft()
}

func TestPrepareWaitsForTheBroker(t *testing.T) {
	f := newFixture(t, true)
	done := make(chan error)
	go func() { done <- f.prepare(f.claim("du")) }()
	time.Sleep(3 * brokerPause)
	f.serve()
	must(t, <-done)
	// A broker that lost its directory gets its links again.
	must(t, f.broker.Remove(context.Background(), "ran/f1/f1u"))
	f.agent.reconcile(context.Background())
	f.link()
}

func TestCollectRemovesWhatNoClaimOwns(t *testing.T) {
	for name, change := range map[string]func(f *fixture, c *resourcev1.ResourceClaim){
		"deleted": func(f *fixture, c *resourcev1.ResourceClaim) {
			must(f.t, f.client.ResourceV1().ResourceClaims("ran").Delete(context.Background(), c.Name, metav1.DeleteOptions{}))
		},
		"made again": func(f *fixture, c *resourcev1.ResourceClaim) { c.UID = "another"; f.update(c) },
		"no pod has": func(f *fixture, c *resourcev1.ResourceClaim) { c.Status.ReservedFor = nil; f.update(c) },
		"not alloc":  func(f *fixture, c *resourcev1.ResourceClaim) { c.Status.Allocation = nil; f.update(c) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := f.claim("du")
			must(t, f.prepare(c))
			must(t, f.agent.Collect(context.Background()))
			f.link() // its pod runs
			change(f, c.DeepCopy())
			must(t, f.agent.specs.write(&claims.Claim{UID: "halfway"}, "/nowhere"))
			must(t, f.agent.Collect(context.Background()))
			f.nothingLeft()
		})
	}
}

// TestCollectLeavesWhatIsBeingWritten: another claim's device becomes whole in a moment.
func TestCollectLeavesWhatIsBeingWritten(t *testing.T) {
	f := newFixture(t)
	must(t, os.MkdirAll(f.agent.specs.dir, 0o755))
	fresh, stale := f.agent.specs.file("fresh")+".new", f.agent.specs.file("stale")+".new"
	must(t, errors.Join(os.WriteFile(fresh, nil, 0o600), os.WriteFile(stale, nil, 0o600)))
	before := time.Now().Add(-2 * unfinishedFor)
	must(t, os.Chtimes(stale, before, before))
	must(t, f.agent.Collect(context.Background()))
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a file of this moment: %v", err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an old file is left: %v", err)
	}
	must(t, os.Remove(fresh))
}

func (f *fixture) update(c *resourcev1.ResourceClaim) {
	f.t.Helper()
	must(f.t, f.client.Tracker().Update(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), c, c.Namespace))
}

// A driver that registers wakes the pods that wait, and later those that have
// waited for a while; no other. A pod without a sandbox waits although its claim
// is prepared: the kubelet may not have got the answer.
func TestWaitingPodsAreWoken(t *testing.T) {
	f := newFixture(t)
	unheard, running := f.claim("cu-up"), f.claim("du", func(p *corev1.Pod, _ *v1alpha1.PortParameters) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
	})
	must(t, errors.Join(f.prepare(unheard), f.prepare(running)))
	ended := f.claim("old", func(p *corev1.Pod, _ *v1alpha1.PortParameters) { p.Status.Phase = corev1.PodSucceeded })
	other := f.claim("gpu")
	other.Status.Allocation.Devices.Results[0].Driver = "gpu.example.com"
	f.update(other)
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	ctx, api := context.Background(), f.client.CoreV1().Pods("ran")
	for _, c := range []*resourcev1.ResourceClaim{unheard, running, ended, other, f.claim("new")} {
		p, err := api.Get(ctx, c.Status.ReservedFor[0].Name, metav1.GetOptions{})
		must(t, err)
		must(t, pods.Add(p))
	}
	at := time.Unix(1000, 0)
	f.agent.now = func() time.Time { return at }
	w := &waker{agent: f.agent, pods: listers.NewPodLister(pods), seen: map[types.UID]waiting{}}
	last := map[string]string{}
	woken := func() (names []string) {
		for _, name := range []string{"cu-up", "du", "gpu", "new", "old"} {
			p, err := api.Get(ctx, name, metav1.GetOptions{})
			must(t, err)
			if now := p.Annotations[annotationWoken]; now != last[name] {
				names, last[name] = append(names, name), now
			}
		}
		return names
	}
	for i, step := range []struct {
		later, patience time.Duration
		want            []string
	}{
		{0, 0, []string{"cu-up", "new"}},
		{wakeAgain - time.Second, wakeAgain, nil},
		{time.Second, wakeAgain, []string{"cu-up", "new"}},
		{wakeAgain, wakeAgain, nil},
		{wakeAgain, wakeAgain, []string{"cu-up", "new"}},
		{4*wakeAgain - time.Second, wakeAgain, nil},
		{time.Second, wakeAgain, []string{"cu-up", "new"}},
		{4 * wakeAgain, wakeAgain, []string{"cu-up", "new"}},
	} {
		at = at.Add(step.later)
		w.wake(ctx, step.patience)
		if got := woken(); !slices.Equal(got, step.want) {
			t.Errorf("step %d woke %v, want %v", i, got, step.want)
		}
	}
}

// A pod that ends waits for the driver as long as its claim is prepared.
func TestAPodThatEndsWaits(t *testing.T) {
	now := metav1.Now()
	prepared := []claims.Claim{{Namespace: "ran", Name: "du-ports"}}
	for claim, want := range map[string]bool{"du-ports": true, "cu-up-ports": false} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ran", DeletionTimestamp: &now}}
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "ports", ResourceClaimName: &claim}}
		if got := waits(p, prepared); got != want {
			t.Errorf("with %s: %v", claim, got)
		}
	}
}

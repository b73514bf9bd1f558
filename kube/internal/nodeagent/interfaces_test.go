// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/sandbox"
	"github.com/drayage/dray/test/testenv"
)

// withInterfaces makes the ports of the link interfaces; but the ends named are native.
func withInterfaces(native ...string) func(*corev1.Pod, *v1alpha1.PortParameters) {
	return func(_ *corev1.Pod, p *v1alpha1.PortParameters) {
		p.Link.Transport = "bridge"
		for i := range p.Link.Ends {
			e := &p.Link.Ends[i]
			e.Face, e.Backend = chain.FaceNetdev, ""
			for _, n := range native {
				if e.Function == n {
					e.Face, e.Backend = chain.FaceNative, plan.BackendNetdev
				}
			}
		}
	}
}

// kept is the claim as the node keeps it.
func (f *fixture) kept(c *resourcev1.ResourceClaim, change ...func(*corev1.Pod, *v1alpha1.PortParameters)) claims.Claim {
	f.t.Helper()
	pod, err := f.agent.podOf(f.t.Context(), c)
	must(f.t, err)
	for _, ch := range change {
		ch(pod, &v1alpha1.PortParameters{})
	}
	kept, err := read(c, pod, "")
	must(f.t, err)
	return kept
}

// The half of a bridged link has its ports, wherever the other end is.
func TestWhatABridgedLinkNeeds(t *testing.T) {
	f := newFixture(t, true)
	own := plan.End{Function: "cu-up", Port: "f1u"}
	f.agent.links.netns = func(pod types.UID) string {
		return map[types.UID]string{"pod-cu-up": "/var/run/netns/1"}[pod]
	}
	cuup, du := f.kept(f.claim("cu-up", withInterfaces())), f.kept(f.claim("du", withInterfaces()))
	across := func(c claims.Claim) claims.Claim {
		l := c.Ports[0].Link
		l.Transport = "vxlan"
		c.Ports = []claims.Port{c.Ports[0]}
		c.Ports[0].Across = &l
		return c
	}
	first := nodenet.Port{End: 0, MAC: "02:00:00:00:00:01", Queues: 1, Interface: &nodenet.Interface{Name: "f1u", IP: cuup.Ports[0].Link.Ends[0].IP, Netns: "/var/run/netns/1"}}
	second := nodenet.Port{End: 1, MAC: "02:00:00:00:00:02", Queues: 1, Interface: &nodenet.Interface{Name: "f1u", IP: du.Ports[0].Link.Ends[1].IP}}
	check := func(name string, all []claims.Claim, want nodenet.Half) {
		t.Helper()
		want.Name, want.MTU = "ran/f1/f1u", 1600
		wishes, found := f.agent.links.wanted(all)
		w := wishes[want.Name]
		if len(found) > 0 || !reflect.DeepEqual(*w.half, want) || w.brokered() {
			t.Errorf("%s: %+v, not %+v (%v)", name, *w.half, want, found)
		}
	}
	check("one pod", []claims.Claim{cuup}, nodenet.Half{Tunnel: nodenet.TunnelNone, Ports: []nodenet.Port{first}})
	check("both pods", []claims.Claim{du, cuup}, nodenet.Half{Tunnel: nodenet.TunnelNone, Ports: []nodenet.Port{second, first}})
	check("nobody knows where the other is", []claims.Claim{across(cuup)}, nodenet.Half{Tunnel: nodenet.TunnelKept, Ports: []nodenet.Port{first}})
	f.follows(v1alpha1.EndStatus{Function: own.Function, Port: own.Port, Node: "n1"},
		v1alpha1.EndStatus{Function: "du", Port: "f1u", Node: "n2", Tunnel: &v1alpha1.Tunnel{Address: "10.0.0.2", VNI: 7}})
	peer := &nodenet.Peer{MAC: "02:00:00:00:00:02", VNI: 7}
	must(t, peer.Addr.UnmarshalText([]byte("10.0.0.2")))
	check("on two nodes", []claims.Claim{across(cuup)}, nodenet.Half{Ports: []nodenet.Port{first}, Peer: peer})
	check("both here, though the status says otherwise", []claims.Claim{across(cuup), across(du)}, nodenet.Half{Tunnel: nodenet.TunnelNone, Ports: []nodenet.Port{first, second}})
}

// The native port of a link with an interface is a packet socket, and the interface knows
// its address.
func TestAnInterfaceAndANativePort(t *testing.T) {
	f := newFixture(t, true)
	cuup, du := f.kept(f.claim("cu-up", withInterfaces("du"))), f.kept(f.claim("du", withInterfaces("du")))
	wishes, _ := f.agent.links.wanted([]claims.Claim{cuup, du})
	w := wishes["ran/f1/f1u"]
	want := &nodenet.Neighbour{IP: du.Ports[0].Link.Ends[1].IP.Addr(), MAC: "02:00:00:00:00:02"}
	if i := w.half.Ports[0].Interface; i == nil || !reflect.DeepEqual(i.Opposite, want) || w.half.Ports[1].Interface != nil {
		t.Errorf("%+v", w.half.Ports)
	}
	link, err := w.served()
	if err != nil || link.Kind != broker.KindNetdev || len(link.Ends) != 1 || link.Ends[0].Interface != "port1" || link.Ends[0].Netns != "ran/f1/f1u" || link.Ends[0].Socket == "" {
		t.Errorf("%v: served as %+v", err, link)
	}
}

// Without NRI, no pod would get its interfaces: the claim is refused, and says what to do.
func TestNoInterfaceWithoutNRI(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	results, err := f.agent.PrepareResourceClaims(ctx, []*resourcev1.ResourceClaim{f.claim("du", withInterfaces())})
	must(t, err)
	if err := results["claim-du"].Err; !errors.Is(err, sandbox.ErrNoNRI) || !strings.Contains(err.Error(), "enable NRI") {
		t.Errorf("%v", err)
	}
	f.nothingLeft()
}

func TestThePodOfANodesNetworkGetsNoInterface(t *testing.T) {
	f := newFixture(t, true)
	c := f.claim("du", withInterfaces())
	pod, err := f.agent.podOf(t.Context(), c)
	must(t, err)
	pod.Spec.HostNetwork = true
	if _, err := read(c, pod, ""); err == nil || !strings.Contains(err.Error(), "hostNetwork") {
		t.Errorf("%v", err)
	}
}

// The containers of a pod wait until the pod has its interfaces, and start if it has them.
func TestContainersWaitForInterfaces(t *testing.T) {
	f := newFixture(t, true)
	c := f.kept(f.claim("du", withInterfaces()))
	must(t, f.agent.store.Add(t.Context(), c))
	device := func() bool {
		_, err := os.Stat(f.agent.specs.file(c.UID))
		return !errors.Is(err, fs.ErrNotExist)
	}
	start := starting{f.agent}
	if err := start.PodStarts(t.Context(), "pod-du"); err == nil || !strings.Contains(err.Error(), "no network namespace") || device() {
		t.Errorf("without a namespace: %v", err)
	}
	f.agent.links.netns = func(types.UID) string { return "/var/run/netns/1" }
	if err := start.PodStarts(t.Context(), "pod-du"); !errors.Is(err, nodenet.ErrAbsent) || device() {
		t.Errorf("without dray-net: %v", err)
	}
	if err := start.PodStarts(t.Context(), "another"); err != nil {
		t.Errorf("a pod without ports: %v", err)
	}
	must(t, f.agent.admit(&c, errors.New("no interface")))
	if device() {
		t.Error("containers start without their interface")
	}
	must(t, f.agent.specs.write(&c, f.agent.store.Ports(c.UID)))
	start.PodStopped("another")
	if !device() {
		t.Error("another pod stopped, and this one lost its device")
	}
	start.PodStopped("pod-du")
	if device() {
		t.Error("containers of the next sandbox start without their interface")
	}
}

// namespaces are sandboxes of which each has a network namespace.
type namespaces struct{ sandboxes }

func (namespaces) Netns(types.UID) string { return "/var/run/netns/1" }

// TestADamagedDeviceIsRepaired: containers of a pod with interfaces would wait for it for ever.
func TestADamagedDeviceIsRepaired(t *testing.T) {
	f := newFixture(t, true)
	f.agent.pods = namespaces{f.agent.pods}
	c := f.kept(f.claim("du", withInterfaces()))
	must(t, f.agent.admit(&c, nil))
	file := f.agent.specs.file(c.UID)
	want, err := os.ReadFile(file)
	must(t, err)
	for name, damage := range testenv.Damages(`{"cdiVersion":"9.0.0"}`) {
		damage(t, file)
		must(t, f.agent.admit(&c, nil))
		if is, err := host.ReadRegular(file, maxSpec); err != nil || !bytes.Equal(is, want) {
			t.Errorf("%s: %q, %v", name, is, err)
		}
	}
	was, err := os.Stat(file)
	must(t, err)
	must(t, f.agent.admit(&c, nil))
	if is, err := os.Stat(file); err != nil || !os.SameFile(was, is) {
		t.Errorf("a device that is whole is written again: %v", err)
	}
}

// TestAClaimThatThisNodeCannotMakeIsRefused: its file may be of another version. It ends no program.
func TestAClaimThatThisNodeCannotMakeIsRefused(t *testing.T) {
	f := newFixture(t, true)
	good, du := f.kept(f.claim("cu-up", withInterfaces())), f.kept(f.claim("du", withInterfaces()))
	for name, change := range map[string]func(*claims.Port){
		"an unknown transport": func(p *claims.Port) { p.Link.Transport = "pigeon" },
		"an unknown tunnel":    func(p *claims.Port) { l := p.Link; l.Transport = "pigeon"; p.Across = &l },
	} {
		bad := du
		bad.Ports = slices.Clone(du.Ports)
		change(&bad.Ports[0])
		wishes, refused := f.agent.links.wanted([]claims.Claim{good, bad})
		if err := refused[bad.UID]; len(refused) != 1 || err == nil || !strings.Contains(err.Error(), "pigeon") || len(wishes["ran/f1/f1u"].half.Ports) != 1 {
			t.Errorf("%s: %+v, %v", name, wishes, refused)
		}
		wishes, _ = f.agent.links.wanted([]claims.Claim{bad})
		if len(wishes) > 0 {
			t.Errorf("%s: %+v", name, wishes)
		}
		must(t, f.agent.store.Add(t.Context(), bad))
		f.agent.links.netns = func(types.UID) string { return "/var/run/netns/1" }
		if err := (starting{f.agent}).PodStarts(t.Context(), "pod-du"); err == nil {
			t.Errorf("%s: its pod starts", name)
		}
		must(t, f.agent.store.Remove(t.Context(), bad.UID, func([]claims.Claim) error { return nil }))
	}
}

// A fault of one pod's interface is none of the other pod's.
func TestFaultsOfInterfaces(t *testing.T) {
	f := newFixture(t, true)
	all := []claims.Claim{f.kept(f.claim("cu-up", withInterfaces())), f.kept(f.claim("du", withInterfaces()))}
	found := faults{}
	found.blame(all, "ran/f1/f1u", 1, errors.New("a namesake"))
	if len(found) != 1 || found["claim-du"] == nil {
		t.Errorf("%v", found)
	}
	wishes, _ := f.agent.links.wanted(all)
	found = faults{}
	f.agent.links.makeHalves(t.Context(), all, wishes, found)
	if !errors.Is(found["claim-du"], nodenet.ErrAbsent) || !errors.Is(found["claim-cu-up"], nodenet.ErrAbsent) {
		t.Errorf("without dray-net: %v", found)
	}
}

// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/sandbox"
)

// withSandboxes are the namespaces of pods that have started.
type withSandboxes struct{}

func (withSandboxes) Expect(context.Context, types.UID) error { return nil }
func (withSandboxes) Netns(pod types.UID) string              { return "/var/run/netns/" + string(pod) }
func (withSandboxes) Run(context.Context, sandbox.Handler)    {}

// facePair is the link f1u as planned for ports of two faces: those of cu-up and of du.
type facePair [2]chain.Face

// bridged reports whether nodes make the link as a bridge.
func (p facePair) bridged() bool { return p[0] == chain.FaceNetdev || p[1] == chain.FaceNetdev }

// planned gives the ports of a claim's link their faces. The link can cross nodes.
func (p facePair) planned(_ *corev1.Pod, v *v1alpha1.PortParameters) {
	if p.bridged() {
		v.Link.Transport = "bridge"
	}
	for i := range v.Link.Ends {
		e := &v.Link.Ends[i]
		e.Face, e.Backend = p[i], fleet.Backends[v.Link.Transport]
		if e.Face == chain.FaceNetdev {
			e.Backend = ""
		}
	}
	across := v.Link
	across.Transport = vxlan.Name
	v.Across = &across
}

// faceTest is the agent of node n1 with the pods of such a link.
type faceTest struct {
	*fixture
	pair   facePair
	net    *pretendedNet
	claims [2]*resourcev1.ResourceClaim // of cu-up and du
}

func newFaceTest(t *testing.T, pair facePair) *faceTest {
	t.Helper()
	f := newFixture(t)
	f.withFiles().install()
	f.agent.pods, f.agent.links.netns = withSandboxes{}, withSandboxes{}.Netns
	return &faceTest{f, pair, f.pretendNet(), [2]*resourcev1.ResourceClaim{f.claim("cu-up", pair.planned), f.claim("du", pair.planned)}}
}

// duIs makes the agent know that the pod of du is on a node, and follow.
func (f *faceTest) duIs(node string) {
	f.t.Helper()
	du := v1alpha1.EndStatus{Function: "du", Port: "f1u", Node: node}
	if node == "n2" {
		du.Tunnel = &v1alpha1.Tunnel{Address: "10.0.0.2", VNI: 7}
	}
	f.follows(v1alpha1.EndStatus{Function: "cu-up", Port: "f1u", Node: "n1"}, du)
	found, err := f.agent.apply(f.t.Context())
	must(f.t, err)
	if len(found) > 0 {
		f.t.Errorf("du on %s: %v", node, found)
	}
}

// has fails unless this node has what its pods need: those of the ends that are here.
func (f *faceTest) has(when string, apart bool, here ...int) {
	f.t.Helper()
	brokered := map[int]bool{}
	for end, c := range f.claims {
		_, err := os.Lstat(f.socket(c))
		for _, h := range here {
			brokered[end] = brokered[end] || h == end && f.pair[end] != chain.FaceNetdev
		}
		if there := !errors.Is(err, fs.ErrNotExist); there != brokered[end] {
			f.t.Errorf("%s: end %d has a socket: %v", when, end, there)
		}
	}
	links, err := f.broker.Status(f.t.Context())
	must(f.t, err)
	kind := broker.KindShm
	if apart || f.pair.bridged() {
		kind = broker.KindNetdev
	}
	if wanted := brokered[0] || brokered[1]; wanted != (len(links) == 1) || wanted && links[0].Kind != kind {
		f.t.Errorf("%s: the broker has %+v", when, links)
	}
	f.halves(when, apart, here)
	for _, end := range here {
		f.shows(when, apart, f.claims[end])
	}
}

// halves checks what dray-net was last asked for.
func (f *faceTest) halves(when string, apart bool, here []int) {
	f.t.Helper()
	f.net.Lock()
	defer f.net.Unlock()
	if wanted := apart || f.pair.bridged(); wanted != (len(f.net.halves) == 1) || len(f.net.halves) > 1 {
		f.t.Fatalf("%s: dray-net has %+v", when, f.net.halves)
	}
	for _, h := range f.net.halves {
		if apart != (h.Tunnel == nodenet.TunnelWanted && h.Peer != nil && h.Peer.VNI == 7) {
			f.t.Errorf("%s: the tunnel of %+v", when, h)
		}
		ports := map[int]bool{} // whether the end is an interface
		for _, p := range h.Ports {
			ports[p.End] = p.Interface != nil
			if i, other := p.Interface, f.pair[1-p.End]; i != nil && ((i.Opposite != nil) != (other != chain.FaceNetdev) ||
				i.Opposite != nil && i.Opposite.DPDK != (other == chain.FaceDPDK)) {
				f.t.Errorf("%s: an interface opposite of a %s port: %+v", when, other, i)
			}
		}
		for _, end := range here {
			if an, there := ports[end]; there != f.pair.bridged() || an != (f.pair[end] == chain.FaceNetdev) || len(ports) > len(here) {
				f.t.Errorf("%s: end %d among %+v", when, end, h.Ports)
			}
		}
	}
}

// shows checks what a claim says of its port.
func (f *faceTest) shows(when string, apart bool, c *resourcev1.ResourceClaim) {
	f.t.Helper()
	want := "shm"
	switch {
	case apart:
		want = vxlan.Name
	case f.pair.bridged():
		want = "bridge"
	}
	f.agent.reportAll(f.t.Context())
	now, err := f.client.ResourceV1().ResourceClaims("ran").Get(f.t.Context(), c.Name, metav1.GetOptions{})
	must(f.t, err)
	var data v1alpha1.PortData
	must(f.t, json.Unmarshal(now.Status.Devices[0].Data.Raw, &data))
	if data.Transport != want || apart != (data.Tunnel != nil) || apart != (data.Peer != nil) {
		f.t.Errorf("%s: claim %s says %+v", when, c.Name, data)
	}
}

// Ports of any two faces have a link: on one node, on two, and while one of them moves between these.
// A node makes what its own ports need, whatever the other node has.
func TestEveryPairOfFaces(t *testing.T) {
	faces := []chain.Face{chain.FaceNative, chain.FaceDPDK, chain.FaceNetdev}
	for _, own := range faces {
		for _, other := range faces {
			pair := facePair{own, other}
			name := string(own) + " and " + string(other)
			t.Run(name+", same node", func(t *testing.T) {
				f := newFaceTest(t, pair)
				must(t, f.prepare(f.claims[0]))
				f.duIs("")
				f.has("one pod", false, 0)
				must(t, f.prepare(f.claims[1]))
				f.duIs("n1")
				f.has("both pods", false, 0, 1)
			})
			t.Run(name+", other node", func(t *testing.T) {
				f := newFaceTest(t, pair)
				must(t, f.prepare(f.claims[0]))
				f.duIs("n2")
				f.has("apart", true, 0)
				must(t, f.agent.unprepare(t.Context(), f.claims[0].UID))
				f.nothingLeft()
			})
			t.Run(name+", moved", func(t *testing.T) {
				f := newFaceTest(t, pair)
				must(t, errors.Join(f.prepare(f.claims[0]), f.prepare(f.claims[1])))
				f.duIs("n1")
				for range 2 {
					must(t, f.agent.unprepare(t.Context(), f.claims[1].UID))
					f.duIs("n2")
					f.has("moved away", true, 0)
					must(t, f.prepare(f.claims[1]))
					f.duIs("n1")
					f.has("back", false, 0, 1)
				}
			})
		}
	}
}

// A link leaves the broker when its pods have it by another plan, in which libdray opens none of its ports.
func TestALinkOfAnotherPlanLeavesTheBroker(t *testing.T) {
	f := newFaceTest(t, facePair{chain.FaceDPDK, chain.FaceDPDK})
	must(t, f.prepare(f.claims[0]))
	f.link()
	all, err := f.agent.store.List(t.Context())
	must(t, err)
	memifPort(nil, &all[0].Ports[0].PortParameters)
	out, err := f.agent.links.apply(t.Context(), all)
	must(t, err)
	links, err := f.broker.Status(t.Context())
	must(t, err)
	if len(links) > 0 || len(out.faults) > 0 {
		t.Errorf("the broker keeps %+v: %v", links, out.faults)
	}
}

// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodenet"
)

// follows makes the agent know the status of chain ran/f1, with these ends of its link.
func (f *fixture) follows(ends ...v1alpha1.EndStatus) {
	f.t.Helper()
	f.knows(v1alpha1.ChainStatus{Links: []v1alpha1.LinkStatus{{Name: "f1u", Ends: ends}}})
}

// knows makes the agent know a status of chain ran/f1.
func (f *fixture) knows(s v1alpha1.ChainStatus) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f.t.Cleanup(cancel)
	must(f.t, f.agent.links.peers.watch(ctx, chainsWith(f.t, chainWith(f.t, s)), func() {}))
}

// chainWith is chain ran/f1 with a status.
func chainWith(t *testing.T, s v1alpha1.ChainStatus) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(s)
	must(t, err)
	status := map[string]any{}
	must(t, json.Unmarshal(text, &status))
	chain := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": status}}
	chain.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Chain"))
	chain.SetNamespace("ran")
	chain.SetName("f1")
	return chain
}

// chainsWith is an API server that has a chain.
func chainsWith(t *testing.T, chain *unstructured.Unstructured) *dynamicfake.FakeDynamicClient {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{chains: "ChainList"}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, chain)
}

// crossing is a prepared claim of a function whose link can cross nodes.
func crossing(function string) claims.Claim {
	across := f1u()
	across.Transport = vxlan.Name
	return claims.Claim{UID: types.UID(function), Namespace: "ran", Name: function, User: 1000,
		Ports: []claims.Port{{PortParameters: v1alpha1.NewPortParameters("f1", function, "f1u", f1u(), &across), Request: "f1u"}}}
}

func TestWhereTheOtherEndIs(t *testing.T) {
	end := func(function, node string, tunnel *v1alpha1.Tunnel) v1alpha1.EndStatus {
		return v1alpha1.EndStatus{Function: function, Port: "f1u", Node: node, Tunnel: tunnel}
	}
	far := &v1alpha1.Tunnel{Address: "10.0.0.2", VNI: 7}
	for name, c := range map[string]struct {
		ends    []v1alpha1.EndStatus // none: the chain is not known
		here    []string             // functions with a claim on this node
		half    bool
		vni     int // of the peer
		kind    string
		unknown bool
	}{
		"nobody knows":        {nil, []string{"cu-up"}, false, 0, broker.KindShm, true},
		"nowhere":             {[]v1alpha1.EndStatus{end("cu-up", "n1", nil), end("du", "", nil)}, []string{"cu-up"}, false, 0, broker.KindShm, false},
		"elsewhere":           {[]v1alpha1.EndStatus{end("cu-up", "n1", nil), end("du", "n2", far)}, []string{"cu-up"}, true, 7, broker.KindNetdev, false},
		"elsewhere, not made": {[]v1alpha1.EndStatus{end("cu-up", "n1", nil), end("du", "n2", nil)}, []string{"cu-up"}, true, 0, broker.KindShm, false},
		"an impossible place": {[]v1alpha1.EndStatus{end("cu-up", "n1", nil), end("du", "n2", &v1alpha1.Tunnel{Address: "x", VNI: 7})}, []string{"cu-up"}, true, 0, broker.KindShm, false},
		"here":                {[]v1alpha1.EndStatus{end("cu-up", "n1", nil), end("du", "n1", nil)}, []string{"cu-up", "du"}, false, 0, broker.KindShm, false},
		"still here as well":  {[]v1alpha1.EndStatus{end("cu-up", "n1", nil), end("du", "n2", far)}, []string{"cu-up", "du"}, false, 0, broker.KindShm, false},
		"this end has moved":  {[]v1alpha1.EndStatus{end("cu-up", "n3", nil), end("du", "n2", far)}, []string{"cu-up"}, false, 0, broker.KindShm, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, true)
			if len(c.ends) > 0 {
				f.follows(c.ends...)
			}
			var all []claims.Claim
			for _, function := range c.here {
				all = append(all, crossing(function))
			}
			wishes, refused := f.agent.links.wanted(all)
			w := wishes["ran/f1/f1u"]
			if len(refused) > 0 || w == nil {
				t.Fatalf("%v, %v", wishes, refused)
			}
			if (w.half != nil) != c.half || w.unknown != c.unknown {
				t.Errorf("half %+v, unknown %v", w.half, w.unknown)
			}
			if c.vni > 0 && (w.half.Peer == nil || w.half.Peer.VNI != c.vni || w.half.Peer.MAC != f1u().Ends[1].MAC || w.half.MAC != f1u().Ends[0].MAC) {
				t.Errorf("half %+v", w.half)
			}
			link, err := w.served()
			if err != nil || link.Kind != c.kind || (link.Kind == broker.KindNetdev) != (link.Ends[0].Interface == nodenet.Device) || link.Ends[1].Interface != "" {
				t.Errorf("served as %+v", link)
			}
		})
	}
}

// Without dray-net, a link that may be up stays, and its claim says what it said.
func TestALinkStaysWhileDrayNetIsAway(t *testing.T) {
	f := newFixture(t, true)
	f.follows(v1alpha1.EndStatus{Function: "cu-up", Port: "f1u", Node: "n1"},
		v1alpha1.EndStatus{Function: "du", Port: "f1u", Node: "n2", Tunnel: &v1alpha1.Tunnel{Address: "10.0.0.2", VNI: 7}})
	all := []claims.Claim{crossing("cu-up")}
	wishes, _ := f.agent.links.wanted(all)
	found := faults{}
	received := f.agent.links.makeHalves(t.Context(), all, wishes, found)
	if w := wishes["ran/f1/f1u"]; !w.unknown || w.half.Peer != nil || !received.unknown["ran/f1/f1u"] || len(received.at)+len(found) > 0 {
		t.Errorf("%+v, %+v", w, received)
	}
}

// Once the other pod of a link has left the node, the next report says where this node
// receives the link. The other node waits for that.
func TestAPodThatLeavesIsReportedAtOnce(t *testing.T) {
	f := newFixture(t)
	across := f1u()
	across.Transport = vxlan.Name
	crosses := func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Across = &across }
	stays, leaves := f.claim("cu-up", crosses), f.claim("du", crosses)
	must(t, f.prepare(stays))
	must(t, f.prepare(leaves))
	f.follows(v1alpha1.EndStatus{Function: "cu-up", Port: "f1u", Node: "n1"}, v1alpha1.EndStatus{Function: "du", Port: "f1u", Node: "n2"})
	<-f.agent.changed
	must(t, f.agent.unprepare(t.Context(), leaves.UID))
	select {
	case <-f.agent.changed:
	default:
		t.Error("nothing is reported")
	}
	if !latest(f.agent.live.tunnels).unknown["ran/f1/f1u"] { // dray-net does not run here
		t.Errorf("what is reported: %+v", latest(f.agent.live.tunnels))
	}
}

// Nodes judge by what the chain requires now, and say so.
func TestLimitsOfAChain(t *testing.T) {
	f := newFixture(t)
	must(t, f.prepare(f.claim("du", func(_ *corev1.Pod, p *v1alpha1.PortParameters) {
		across := f1u()
		across.Transport = vxlan.Name
		p.Across = &across
	})))
	limits := func(generation int64, text string) {
		f.knows(v1alpha1.ChainStatus{Links: []v1alpha1.LinkStatus{{Name: "f1u", Limits: &v1alpha1.Limits{Generation: generation, Text: text}}}})
		f.agent.judge(t.Context())
		f.agent.reportAll(t.Context())
	}
	latency := func() metav1.Condition {
		c, err := f.client.ResourceV1().ResourceClaims("ran").Get(t.Context(), "du-ports", metav1.GetOptions{})
		must(t, err)
		return *meta.FindStatusCondition(c.Status.Devices[0].Conditions, "latency")
	}
	f.agent.reportAll(t.Context())
	if c := latency(); c.ObservedGeneration != 0 || !strings.Contains(c.Message, "≤ 1.5ms") {
		t.Errorf("of a chain that is not known: %+v", c)
	}
	limits(4, `{"requires":{"latency":"2ms"},"evidence":[{"requirement":"latency","required":"≤ 2ms at p99"}]}`)
	if c := latency(); c.ObservedGeneration != 4 || !strings.Contains(c.Message, "≤ 2ms") {
		t.Errorf("%+v", c)
	}
	if all, err := f.agent.limited(t.Context()); err != nil || all[0].Ports[0].Across.Requires.Latency != units.Duration(2*time.Millisecond) || all[0].Ports[0].Across.Transport != vxlan.Name {
		t.Errorf("between nodes: %+v, %v", all, err)
	}
	limits(5, "of another release")
	if c := latency(); c.ObservedGeneration != 0 {
		t.Errorf("limits that cannot be read: %+v", c)
	}
	f.agent.live.judged.Store(&map[string]judgement{crossingLink: {limitsOf: 4, verdicts: []verdict.Verdict{{Requirement: "latency", Verdict: verdict.Met}}}})
	f.agent.reportAll(t.Context())
	if c := latency(); c.Status != metav1.ConditionUnknown {
		t.Errorf("a verdict by other limits: %+v", c)
	}
}

// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/nodenet"
)

// pretendedNet is a dray-net that makes whatever is asked for, and nothing in the kernel.
type pretendedNet struct {
	sync.Mutex
	halves []nodenet.Half // as last asked for
	fault  string         // of each half
}

// pretendNet answers the agent's calls until the end of the test.
func (f *fixture) pretendNet() *pretendedNet {
	f.t.Helper()
	p := &pretendedNet{}
	f.pretend(filepath.Join(f.agent.links.net.Dir, "control.sock"), p.answer)
	return p
}

// pretend answers each call at a socket until the end of the test.
func (f *fixture) pretend(socket string, answer func(net.Conn)) {
	f.t.Helper()
	must(f.t, os.MkdirAll(filepath.Dir(socket), 0o700))
	l, err := net.Listen("unix", socket)
	must(f.t, err)
	f.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
		}
	}()
}

func (p *pretendedNet) answer(c net.Conn) {
	defer c.Close()
	var q struct {
		Info  bool
		Apply *struct{ Halves []nodenet.Half }
	}
	line, err := bufio.NewReader(c).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &q) != nil {
		return
	}
	var r struct {
		Info *nodenet.Info  `json:"info,omitempty"`
		Made []nodenet.Made `json:"made,omitempty"`
	}
	if q.Info {
		r.Info = &nodenet.Info{Addr: netip.MustParseAddr("10.0.0.1"), MTU: 1600}
	}
	p.Lock()
	defer p.Unlock()
	if q.Apply != nil {
		p.halves = q.Apply.Halves
		for _, h := range p.halves {
			made := nodenet.Made{Name: h.Name, Error: p.fault}
			if h.Tunnel == nodenet.TunnelWanted {
				made.VNI = 9
			}
			r.Made = append(r.Made, made)
		}
	}
	_ = json.NewEncoder(c).Encode(r)
}

// ports are how many ports the halves have.
func (p *pretendedNet) ports() (n int) {
	p.Lock()
	defer p.Unlock()
	for _, h := range p.halves {
		n += len(h.Ports)
	}
	return n
}

// wants makes the chain want that transport, and the agent follow.
func (f *fixture) wants(transport string) {
	f.t.Helper()
	f.knows(v1alpha1.ChainStatus{Links: []v1alpha1.LinkStatus{{Name: "f1u", Local: transport}}})
	f.agent.reconcile(f.t.Context())
	f.agent.reportAll(f.t.Context())
}

// says fails unless the link has that transport, at the broker and in the claim of du.
func (f *fixture) says(when, transport string) {
	f.t.Helper()
	kind := map[string]string{"shm": broker.KindShm, "bridge": broker.KindNetdev}[transport]
	if l := f.link(); l.Kind != kind {
		f.t.Errorf("%s: the broker has %+v", when, l)
	}
	f.reports(when, transport)
}

// reports fails unless the claim of du says that its link has that transport.
func (f *fixture) reports(when, transport string) {
	f.t.Helper()
	c, err := f.client.ResourceV1().ResourceClaims("ran").Get(f.t.Context(), "du-ports", metav1.GetOptions{})
	must(f.t, err)
	if data := c.Status.Devices[0].Data; data == nil || string(data.Raw) != `{"transport":"`+transport+`"}` {
		f.t.Errorf("%s: the claim says %+v", when, data)
	}
}

// The link of two pods moves to what their chain wants, and stays there while nobody knows
// what that is.
func TestALinkMovesUnderItsPods(t *testing.T) {
	f := newFixture(t)
	net := f.pretendNet()
	du, cu := f.claim("du"), f.claim("cu-up")
	must(t, errors.Join(f.prepare(du), f.prepare(cu)))
	f.agent.reportAll(t.Context())
	f.says("at first", "shm")
	f.wants("bridge")
	if f.says("moved", "bridge"); net.ports() != 2 {
		t.Errorf("dray-net is asked for %+v", net.halves)
	}

	old := f.agent
	var err error
	f.agent, err = New(old.o) // it does not know the chain yet
	must(t, err)
	f.agent.reconcile(t.Context())
	must(t, errors.Join(f.prepare(du), f.prepare(cu)))
	if f.says("after a restart", "bridge"); net.ports() != 2 {
		t.Errorf("dray-net is asked for %+v", net.halves)
	}

	f.wants("shm")
	if f.says("back", "shm"); net.ports() != 0 {
		t.Errorf("dray-net keeps %+v", net.halves)
	}
	for _, c := range []*resourcev1.ResourceClaim{du, cu} {
		must(t, f.agent.unprepare(t.Context(), c.UID))
	}
	f.nothingLeft()
}

// A pod that starts after its chain has changed joins the link of the pod that runs.
func TestAPodJoinsALinkThatHasMoved(t *testing.T) {
	f := newFixture(t)
	f.pretendNet()
	must(t, f.prepare(f.claim("du")))
	f.wants("bridge")
	later := f.claim("cu-up", withInterfaces("cu-up", "du")) // as planned now: both ports are native
	must(t, f.prepare(later))
	f.agent.reportAll(t.Context())
	f.says("both pods", "bridge")
}

// What dray-net cannot make leaves the link as it is.
func TestALinkThatCannotMoveStays(t *testing.T) {
	f := newFixture(t)
	must(t, errors.Join(f.prepare(f.claim("du")), f.prepare(f.claim("cu-up"))))
	before := f.link().Generation
	f.wants("bridge")
	f.says("without dray-net", "shm")
	net := f.pretendNet()
	net.fault = "no veth"
	f.wants("bridge")
	if f.says("with a fault", "shm"); f.link().Generation != before {
		t.Errorf("the link was touched: %+v", f.link())
	}
	net.fault = ""
	f.agent.reconcile(t.Context())
	f.agent.reportAll(t.Context())
	f.says("healed", "bridge")
}

// Whatever a chain's status says, a link becomes only what nodes make of its ports.
func TestWhatNoLinkBecomes(t *testing.T) {
	f := newFixture(t)
	f.pretendNet()
	must(t, errors.Join(f.prepare(f.claim("du")), f.prepare(f.claim("cu-up"))))
	for _, transport := range []string{"vxlan", "memif", "nonsense"} {
		f.wants(transport)
		f.says(transport, "shm")
	}
	interfaces := f.kept(f.claim("ru", withInterfaces("cu-up"), func(_ *corev1.Pod, p *v1alpha1.PortParameters) {
		p.Function, p.Link.Ends[1].Function = "ru", "ru"
	}))
	f.knows(v1alpha1.ChainStatus{Links: []v1alpha1.LinkStatus{{Name: "f1u", Local: "shm"}}})
	if f.agent.links.peers.move(&interfaces) || interfaces.Ports[0].Link.Transport != "bridge" {
		t.Errorf("a link with an interface: %+v", interfaces.Ports[0].Link)
	}
}

// A verdict on the transport before says nothing of this one.
func TestNoVerdictOnTheTransportBefore(t *testing.T) {
	f := newFixture(t)
	p := &f.kept(f.claim("du")).Ports[0]
	j := judgement{verdicts: []verdict.Verdict{{Requirement: "latency", Verdict: verdict.Met}}}
	if verdicts, _ := j.of(false, p); len(verdicts) != 1 {
		t.Errorf("%+v", verdicts)
	}
	p.Link.Transport, p.Link.Ends[0].Backend = "bridge", plan.BackendNetdev
	if verdicts, why := j.of(false, p); verdicts != nil || !strings.Contains(why, "no traffic") {
		t.Errorf("%+v, %s", verdicts, why)
	}
}

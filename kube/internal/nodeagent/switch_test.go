// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/cni"
	"github.com/drayage/dray/kube/internal/meet"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// switchedPort makes a claim's link one of the switch, which can cross nodes.
func switchedPort(_ *corev1.Pod, p *v1alpha1.PortParameters) {
	memifPort(nil, p)
	p.Link.Transport = ovsdpdk.Name
	across := p.Link
	across.Transport = ovsdpdk.NameTunnel
	p.Across = &across
}

// pretendedSwitch is a dray-switch that has whatever is asked for, and forwards nothing.
type pretendedSwitch struct {
	sync.Mutex
	links  []nodeswitch.Link // as last asked for
	pruned bool              // all others were to go
	fault  string            // of each link
}

// pretendSwitch answers the agent's calls until the end of the test.
func (f *fixture) pretendSwitch() *pretendedSwitch {
	f.t.Helper()
	p := &pretendedSwitch{}
	f.pretend(nodeswitch.ControlSocket(f.agent.links.sw.Dir), p.answer)
	return p
}

func (p *pretendedSwitch) answer(c net.Conn) {
	defer c.Close()
	var q nodeswitch.Request
	if nodeswitch.Read(c, &q) != nil {
		return
	}
	var r nodeswitch.Response
	if q.Info {
		r.Info = &nodeswitch.Info{Addr: netip.MustParseAddr("10.1.0.1"), MTU: 1600, Version: "3.1.0"}
	}
	p.Lock()
	defer p.Unlock()
	if q.Apply != nil {
		p.links, p.pruned = q.Apply.Links, q.Apply.Prune
		for _, link := range p.links {
			m := nodeswitch.Made{Name: link.Name, Error: p.fault}
			if link.Tunnel {
				m.VNI = 77
			}
			r.Made = append(r.Made, m)
		}
	}
	_ = nodeswitch.Write(c, r)
}

// asked is what the switch was last asked for.
func (p *pretendedSwitch) asked() ([]nodeswitch.Link, bool) {
	p.Lock()
	defer p.Unlock()
	return p.links, p.pruned
}

// switchFixture has a driver's files, a broker, and a pretended switch.
func switchFixture(t *testing.T) (*fixture, *pretendedSwitch) {
	t.Helper()
	f := newFixture(t)
	f.withFiles().install()
	return f, f.pretendSwitch()
}

// Each port of the switch is a vhost-user device of an application, whose socket its pod shows to
// the switch and to nobody else.
func TestPodsOfASwitch(t *testing.T) {
	f, sw := switchFixture(t)
	cu, du := f.claim("cu-up", switchedPort), f.claim("du", switchedPort)
	must(t, errors.Join(f.prepare(cu), f.prepare(du)))
	links, pruned := sw.asked()
	if len(links) != 1 || len(links[0].Ports) != 2 || links[0].Tunnel || links[0].Learning || links[0].MTU != f1u().MTU || !pruned {
		t.Fatalf("%+v", links)
	}
	if all, err := f.broker.Status(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("the broker makes links: %+v, %v", all, err)
	}
	all, err := f.agent.store.List(t.Context())
	must(t, err)
	for i := range all {
		c := &all[i]
		if v := c.DPDK.Vdevs[0]; v.Driver != "net_virtio_user" || !strings.Contains(v.Options, "server=1") || v.Dir != "/run/dray/links/f1u" || !c.DPDK.Attended() {
			t.Errorf("%+v", v)
		}
		f.shows(filepath.Join(f.agent.store.Ports(c.UID), "f1u"), links[0].Ports[c.Ports[0].End()].Door)
	}
	for _, c := range all {
		got := interfacesOf(all, c.PodUID)
		if len(got) != 1 || got[0].Device == nil || *got[0].Device != (cni.Device{Type: cni.VhostUser, Path: "/run/dray/links/f1u/vhost.sock", Listens: true}) {
			t.Errorf("dray-cni reports %+v", got)
		}
	}
	f.agent.reportAll(t.Context())
	f.reports("both are prepared", ovsdpdk.Name)
	must(t, errors.Join(f.agent.unprepare(t.Context(), cu.UID), f.agent.unprepare(t.Context(), du.UID)))
	if links, pruned := sw.asked(); len(links) > 0 || !pruned {
		t.Errorf("afterwards: %+v", links)
	}
	f.nothingLeft()
}

// shows has a pod show a socket at its door, which must be seen at the switch's.
func (f *fixture) shows(pod, door string) {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.t.Context())
	path := filepath.Join(f.t.TempDir(), "vhost.sock")
	l, err := net.Listen("unix", path)
	must(f.t, err)
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- meet.Show(ctx, pod, path, func(context.Context) error { return nil })
	}()
	shown, err := meet.Look(ctx, door)
	must(f.t, err)
	if shown.Path != path {
		f.t.Errorf("the switch sees %s", shown.Path)
	}
	must(f.t, shown.Close())
	stop()
	must(f.t, <-ended)
}

// A link of the switch crosses nodes by a tunnel, and its applications' devices stay as they are.
func TestASwitchHasATunnelToAnotherNode(t *testing.T) {
	f, sw := switchFixture(t)
	cu := f.claim("cu-up", switchedPort)
	must(t, f.prepare(cu))
	if links, pruned := sw.asked(); len(links) > 0 || pruned {
		t.Errorf("nobody knows where du is, and the switch is asked for %+v", links)
	}
	end := func(function, node string, tunnel *v1alpha1.Tunnel) v1alpha1.EndStatus {
		return v1alpha1.EndStatus{Function: function, Port: "f1u", Node: node, Tunnel: tunnel}
	}
	for name, c := range map[string]struct {
		du     v1alpha1.EndStatus
		tunnel bool
		peer   *nodeswitch.Peer
		over   string
	}{
		"nowhere":             {end("du", "", nil), false, nil, ovsdpdk.Name},
		"elsewhere, not made": {end("du", "n2", nil), true, nil, ovsdpdk.NameTunnel},
		"elsewhere": {end("du", "n2", &v1alpha1.Tunnel{Address: "10.1.0.2", VNI: 7}), true,
			&nodeswitch.Peer{Addr: netip.MustParseAddr("10.1.0.2"), VNI: 7}, ovsdpdk.NameTunnel},
	} {
		f.follows(end("cu-up", "n1", nil), c.du)
		_, err := f.agent.apply(t.Context())
		must(t, err)
		links, pruned := sw.asked()
		if len(links) != 1 || len(links[0].Ports) != 1 || links[0].Tunnel != c.tunnel || !reflect.DeepEqual(links[0].Peer, c.peer) || !pruned {
			t.Errorf("%s: %+v", name, links)
		}
		now := latest(f.agent.live.tunnels)
		if got := now.over["ran/f1/f1u"]; got != c.over {
			t.Errorf("%s: over %s", name, got)
		}
		received, known := now.at["ran/f1/f1u"]
		if known != c.tunnel || known && received != (v1alpha1.Tunnel{Address: "10.1.0.1", VNI: 77}) {
			t.Errorf("%s: %+v", name, received)
		}
		if to, sends := now.to["ran/f1/f1u"]; sends != (c.peer != nil) || sends && to != *c.du.Tunnel {
			t.Errorf("%s: it sends to %+v", name, to)
		}
	}
}

// The switch learns where a tunnel ends as soon as the chain's status says it.
func TestASwitchFollowsItsChain(t *testing.T) {
	f, sw := switchFixture(t)
	must(t, f.prepare(f.claim("cu-up", switchedPort)))
	du := v1alpha1.EndStatus{Function: "du", Port: "f1u", Node: "n2"}
	status := v1alpha1.ChainStatus{Links: []v1alpha1.LinkStatus{{Name: "f1u", Ends: []v1alpha1.EndStatus{{Function: "cu-up", Port: "f1u", Node: "n1"}, du}}}}
	client := chainsWith(t, chainWith(t, status))
	f.agent.o.Dynamic = client
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.agent.follow(ctx) }()
	defer func() { stop(); <-ended }()
	makes := func(what string, ok func(nodeswitch.Link) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			links, _ := sw.asked()
			if len(links) == 1 && ok(links[0]) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: it is asked for %+v", what, links)
			}
		}
	}
	makes("a tunnel", func(l nodeswitch.Link) bool { return l.Tunnel })
	status.Links[0].Ends[1].Tunnel = &v1alpha1.Tunnel{Address: "10.1.0.2", VNI: 7}
	_, err := client.Resource(chains).Namespace("ran").Update(ctx, chainWith(t, status), metav1.UpdateOptions{})
	must(t, err)
	makes("its other end", func(l nodeswitch.Link) bool { return l.Peer != nil && l.Peer.VNI == 7 })
}

// Without its switch, a node serves no such port, and says why. Other links do not need it.
func TestANodeWithoutASwitch(t *testing.T) {
	f := newFixture(t)
	f.withFiles().install()
	f.follows(v1alpha1.EndStatus{Function: "du", Port: "f1u", Node: "n1"})
	du := f.claim("du", switchedPort)
	if err := f.prepare(du); !errors.Is(err, nodeswitch.ErrAbsent) || !strings.Contains(err.Error(), "look at the pod dray-switch") {
		t.Errorf("%v", err)
	}
	must(t, f.agent.unprepare(t.Context(), du.UID))
	must(t, f.prepare(f.claim("cu-up")))
	must(t, f.agent.unprepare(t.Context(), "claim-cu-up"))
	f.pretendSwitch().fault = "no memory"
	if err := f.prepare(du); err == nil || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("%v", err)
	}
}

func TestASwitchJoinsOnlyDevicesOfDPDK(t *testing.T) {
	l := f1u()
	l.Transport = ovsdpdk.Name
	l.Ends[0].Face, l.Ends[1].Face = chain.FaceDPDK, chain.FaceNetdev
	if err := checkLink(&l); err == nil || !strings.Contains(err.Error(), "is no device of DPDK") {
		t.Error(err)
	}
	across := plan.Link{Name: "f1u", Transport: "ovs-vxlan"}
	if err := checkAcross(&across); err == nil {
		t.Error("a tunnel that no daemon makes passes")
	}
}

// The operator learns of a switch that comes, and still knows it while it is away.
func TestASwitchIsPublished(t *testing.T) {
	f, _ := publishes(t)
	transports := func(changed bool, want inventory.Status) {
		t.Helper()
		inv := f.inventory(changed)
		for _, name := range []string{ovsdpdk.Name, ovsdpdk.NameTunnel} {
			if got := inv.Transport(name); got.Status != want || (want == inventory.Missing) != strings.Contains(got.Fix, "kube/deploy/switch") {
				t.Errorf("%+v", got)
			}
		}
	}
	transports(true, inventory.Missing)
	calls := len(f.client.Actions())
	if _, err := f.agent.offers(t.Context()); err != nil || len(f.client.Actions()) != calls {
		t.Errorf("a node without a switch asks the API server at each look: %v", err)
	}
	f.pretendSwitch()
	transports(true, inventory.OK)
	must(t, os.Remove(nodeswitch.ControlSocket(f.agent.links.sw.Dir)))
	transports(false, inventory.OK)
	f.agent.published.Store(nil) // as in a new instance
	transports(true, inventory.OK)
	m, err := f.client.CoreV1().ConfigMaps("dray-system").Get(t.Context(), "dray-inventory-n1", metav1.GetOptions{})
	must(t, err)
	var info nodeswitch.Info
	must(t, json.Unmarshal([]byte(m.Data[v1alpha1.KeySwitch]), &info))
	if info.MTU != 1600 {
		t.Errorf("%+v", info)
	}
}

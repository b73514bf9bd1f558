// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// portCounts are the port counts that the suite tests.
func portCounts(d transport.Driver) []int {
	if d.Caps().MaxEnds == 2 {
		return []int{2}
	}
	return []int{2, 3}
}

// testPorts checks that each port matches the spec exactly.
func testPorts(t *testing.T, d transport.Driver) {
	for _, n := range portCounts(d) {
		r := NewRig(t, d, Options{Ports: n, MTU: 1600, Queues: 2})
		report := r.Up()
		for _, e := range r.Spec.Ends {
			s, err := e.Netns.ReadLink(e.Name)
			testenv.Must(t, err)
			if !s.Up || !s.Carrier {
				t.Errorf("%d ports: %s is not up: %+v", n, e.Name, s)
			}
			if d.Caps().SameNetns {
				// The port is a name of lo, which has neither the MAC nor the prefix.
				if !slices.Contains(s.Addrs, netip.PrefixFrom(e.IP.Addr(), 32)) {
					t.Errorf("%s lacks %s: %v", e.Name, e.IP, s.Addrs)
				}
				continue
			}
			if !bytes.Equal(s.MAC, e.MAC) || s.MTU != 1600 || s.Queues != 2 || !slices.Contains(s.Addrs, e.IP) {
				t.Errorf("%d ports: %s is %+v, not as in %+v", n, e.Name, s, e)
			}
			if ip4 := slices.DeleteFunc(s.Addrs, func(p netip.Prefix) bool { return p.Addr().Is6() }); len(ip4) != 1 {
				t.Errorf("%s has other addresses too: %v", e.Name, ip4)
			}
		}
		checkOffloads(t, r, report)
		checkUnreported(t, r, report)
		checkSilence(t, r)
	}
}

// checkSilence checks that the link's own namespace has no address, with which
// it would add its own packets to the traffic.
func checkSilence(t *testing.T, r *Rig) {
	t.Helper()
	ns := r.Spec.SwitchNetns()
	if !ns.Exists() {
		return
	}
	ports := 0
	err := ns.Do(func() error {
		ifaces, err := net.Interfaces()
		ports = len(ifaces) - 1 // without lo
		for _, i := range ifaces {
			addrs, addrErr := i.Addrs()
			err = errors.Join(err, addrErr)
			if i.Flags&net.FlagLoopback == 0 && len(addrs) > 0 {
				t.Errorf("%s of the switch has the addresses %v", i.Name, addrs)
			}
		}
		return err
	})
	if err != nil || ports < 1 {
		t.Errorf("the switch has %d ports, %v", ports, err)
	}
}

// checkOffloads checks that each port's offloads match the driver's report.
func checkOffloads(t *testing.T, r *Rig, report *transport.Report) {
	t.Helper()
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
	for _, change := range report.Offloads {
		want := change.Feature + " off"
		if change.To {
			want = change.Feature + " on"
		}
		for _, e := range r.Spec.Ports() {
			got, err := e.Netns.Offloads(e.Name)
			if err != nil || !strings.Contains(got, want) || change.Reason == "" {
				t.Errorf("reported %+v, but %s has %q, %v", change, e.Name, got, err)
			}
		}
	}
}

// checkUnreported checks that a driver that reports no offload change made
// none: each of its veth ports then has the kernel's defaults.
func checkUnreported(t *testing.T, r *Rig, report *transport.Report) {
	t.Helper()
	if len(report.Offloads) > 0 {
		return
	}
	ns := host.Netns{Path: filepath.Join(r.dir, "plain")} // removed with the rig
	testenv.Must(t, host.CreateNetns(ns.Path))
	a, b := host.Iface{Netns: ns, Name: "a", MTU: r.Spec.MTU}, host.Iface{Netns: ns, Name: "b", MTU: r.Spec.MTU}
	testenv.Must(t, host.CreateVeth(a, b))
	want, err := ns.Offloads(a.Name)
	testenv.Must(t, err)
	for _, e := range r.Spec.Ports() {
		s, err := e.Netns.ReadLink(e.Name)
		testenv.Must(t, err)
		got, err := e.Netns.Offloads(e.Name)
		if err != nil || s.Kind == "veth" && got != want {
			t.Errorf("%s has %q, %v; none was reported as changed, and a new one has %q", e.Name, got, err, want)
		}
	}
}

// longestPacket is the longest L3 packet without jumbograms, in bytes.
const longestPacket = 65535

// testTraffic checks that every pair of stations can exchange packets both
// ways, up to exactly the MTU.
func testTraffic(t *testing.T, d transport.Driver, o Options) {
	if _, err := os.Stat("/proc/net/if_inet6"); o.IPv6 && err != nil {
		t.Skip("this kernel has no IPv6")
	}
	if !o.Uplink && o.Ports == 0 {
		counts := portCounts(d)
		o.Ports = counts[len(counts)-1]
	}
	r := NewRig(t, d, o)
	r.Up()
	header := header4
	if o.IPv6 {
		header = header6
	}
	largest := min(r.Spec.MTU, longestPacket) - header
	for _, a := range r.stations {
		for _, b := range r.stations {
			if a == b {
				continue
			}
			for _, size := range []int{1, 100, largest} {
				sendUDP(t, a, b, size)
			}
			if !d.Caps().SameNetns { // the MTU of lo is larger than the longest datagram
				refusedUDP(t, a, b, largest+1)
			}
			sendTCP(t, a, b, 1<<20)
		}
	}
}

// testShape checks that each qdisc is attached as requested. If one cannot be,
// it expects a typed error and no leftovers.
func testShape(t *testing.T, d transport.Driver, o Options) {
	if !d.Caps().Shapes {
		t.Skip("the driver carries no qdiscs, and says so")
	}
	cases := []struct {
		qdisc chain.Qdisc
		text  string
	}{
		{*pfifo, "limit 123p"},
		{chain.Qdisc{Kind: "bfifo", Limit: 123456}, "limit 123456b"},
		{chain.Qdisc{Kind: "tbf", Rate: 50e6, Burst: 70000}, "rate 50Mbit burst 70000b"},
		{chain.Qdisc{Kind: "htb", Rate: 50e6, Ceil: 60e6}, "rate 50Mbit ceil 60Mbit"},
		{chain.Qdisc{Kind: "hfsc", Rate: 50e6}, "m2 50Mbit"},
		{chain.Qdisc{Kind: "htb", Rate: 50e6, Child: &chain.Qdisc{Kind: "pfifo", Limit: 77}}, "qdisc pfifo d7b: parent d7a:1 limit 77p"},
	}
	for _, c := range cases {
		o.Shape = &c.qdisc
		r := NewRig(t, d, o)
		b := r.build()
		err := r.run(context.Background(), b.Steps, nil)
		if host.ProbeQdisc(c.qdisc.Kind) != nil {
			var lacks *host.Unsupported
			if !errors.As(err, &lacks) || !strings.Contains(err.Error(), "unsupported: this kernel has no sch_"+c.qdisc.Kind) {
				t.Errorf("%s: error %v is not the typed one", c.qdisc.Kind, err)
			}
			r.Clean("after an unsupported qdisc")
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v%s", c.qdisc.Kind, err, r.logs())
		}
		for _, e := range r.Spec.Ports() {
			got, err := e.Netns.ReadQdisc(e.Name)
			if err != nil || got.Kind != c.qdisc.Kind || !strings.Contains(got.Text, c.text) {
				t.Errorf("%s has %+v (%v), not %s with %q", e.Name, got, err, c.qdisc.Kind, c.text)
			}
		}
		shaped := len(r.Spec.Ports())
		if d.Caps().SameNetns {
			shaped = 1
		}
		if len(b.Report.Qdiscs) != shaped || !strings.Contains(b.Report.Qdiscs[0].Text, c.text) {
			t.Errorf("%s: report has %+v", c.qdisc.Kind, b.Report.Qdiscs)
		}
	}
}

// testShapeOfOneEnd checks that a port's own qdisc replaces the link's.
func testShapeOfOneEnd(t *testing.T, d transport.Driver, o Options) {
	if !d.Caps().Shapes || d.Caps().SameNetns {
		t.Skip("the driver carries no qdiscs, or has one interface for all ports")
	}
	o.Shape = pfifo
	r := NewRig(t, d, o)
	own := len(r.Spec.Ports()) - 1
	r.Spec.Ends[own].Shape = &chain.Qdisc{Kind: "bfifo", Limit: 98765}
	r.Up()
	for i, e := range r.Spec.Ports() {
		want := "limit 123p"
		if i == own {
			want = "limit 98765b"
		}
		if got, err := e.Netns.ReadQdisc(e.Name); err != nil || !strings.Contains(got.Text, want) {
			t.Errorf("%s has %+v (%v), not %q", e.Name, got, err, want)
		}
	}
}

// testShapeLimits checks that a tbf really limits traffic, each way. Only too
// fast is an error: a busy machine may be slower.
func testShapeLimits(t *testing.T, d transport.Driver, o Options) {
	if !d.Caps().Shapes {
		t.Skip("the driver carries no qdiscs, and says so")
	}
	o.Shape = &chain.Qdisc{Kind: "tbf", Rate: shapedRate}
	r := NewRig(t, d, o)
	r.Up()
	r.shaped()
}

// testShapeAtSwitch checks that the switch itself limits traffic, and the
// ports have no qdisc.
func testShapeAtSwitch(t *testing.T, d transport.Driver, o Options) {
	o.Shape = &chain.Qdisc{Kind: "htb", Rate: shapedRate, At: chain.AtSwitch}
	if !d.Caps().OwnShapes {
		r := NewRig(t, d, o)
		if _, err := d.Build(r.Spec); err == nil || !strings.Contains(err.Error(), "qdiscs") {
			t.Errorf("a qdisc at the switch: error %v", err)
		}
		return
	}
	r := NewRig(t, d, o)
	for i := range r.Spec.Ends {
		r.Spec.Ends[i].Function = fmt.Sprintf("f%d", i)
	}
	report := r.Up()
	if n := len(r.Spec.Ports()); len(report.Qdiscs) != n {
		t.Fatalf("report has %+v, not the qdiscs of %d ports", report.Qdiscs, n)
	}
	if report.Qdiscs[0].Kind != "htb" || !strings.Contains(report.Qdiscs[0].Text, "rate 16Mbit ceil 16Mbit") {
		t.Errorf("report has %+v, not htb on the switch's side", report.Qdiscs)
	}
	for i, e := range r.Spec.Ports() {
		if want := e.Function + "." + e.Name + " at the switch"; report.Qdiscs[i].End != want {
			t.Errorf("the report says %q, not %q", report.Qdiscs[i].End, want)
		}
		if got, err := e.Netns.ReadQdisc(e.Name); err != nil || got.Kind == "htb" {
			t.Errorf("%s has %+v (%v) besides", e.Name, got, err)
		}
	}
	r.shaped()
}

// testQueueAtSwitch checks that the switch sets a discipline without a rate, and that
// a shaper at the ports limits the traffic below it.
func testQueueAtSwitch(t *testing.T, d transport.Driver, o Options, kind string) {
	if !d.Caps().OwnShapes {
		t.Skip("the driver has no switch that sets qdiscs, and says so")
	}
	if err := host.ProbeQdisc(kind); err != nil {
		t.Skip(err)
	}
	o.Shape = &chain.Qdisc{Kind: kind, At: chain.AtSwitch}
	r := NewRig(t, d, o)
	for i := range r.Spec.Ends {
		r.Spec.Ends[i].Shape = &chain.Qdisc{Kind: "tbf", Rate: shapedRate}
	}
	report := r.Up()
	kinds := map[string]int{}
	for _, q := range report.Qdiscs {
		kinds[q.Kind]++
	}
	if n := len(r.Spec.Ports()); kinds[kind] != n || kinds["tbf"] != n {
		t.Errorf("report has %+v, not %s and tbf of %d ports", report.Qdiscs, kind, n)
	}
	r.shaped()
}

// shapedRate is the rate limit in these tests, in bit/s.
const shapedRate = 16e6

// shaped sends each way, and checks that it takes at least the time for that rate.
func (r *Rig) shaped() {
	t := r.t
	t.Helper()
	const rate, size = shapedRate, 1 << 20
	least := time.Duration(size*8/rate*float64(time.Second)) / 2
	for _, p := range r.stations[:len(r.Spec.Ports())] {
		for _, other := range r.stations {
			if other == p {
				continue
			}
			took := sendTCP(t, p, other, size)
			t.Logf("%s to %s: %d bytes at %.0f Mbit/s through a tbf of 16", p.ip, other.ip, size, size*8/took.Seconds()/1e6)
			if took < least {
				t.Errorf("%s to %s: %d bytes took %s; 16 Mbit/s would be twice %s", p.ip, other.ip, size, took, least)
			}
		}
	}
}

// testParallel creates two links at once, with the same names and addresses,
// and checks that neither receives the other's traffic.
func testParallel(t *testing.T, d transport.Driver) {
	rigs := []*Rig{NewRig(t, d, Options{}), NewRig(t, d, Options{})}
	errs := make(chan error, len(rigs))
	for _, r := range rigs {
		b := r.build()
		go func() { errs <- r.run(context.Background(), b.Steps, nil) }()
	}
	for range rigs {
		testenv.Must(t, <-errs)
	}
	to := netip.MustParseAddr("192.0.2.255") // broadcast on the link
	if d.Caps().SameNetns {
		to = rigs[0].stations[1].ip // lo has no broadcast
	}
	near := rigs[0].stations[1].listenAny(t, 0)
	port := near.LocalAddr().(*net.UDPAddr).Port
	far := []*net.UDPConn{rigs[1].stations[0].listenAny(t, port)}
	if !d.Caps().SameNetns {
		far = append(far, rigs[1].stations[1].listenAny(t, port))
	}
	from := rigs[0].stations[0].listenUDP(t)
	heard := false
	for deadline := time.Now().Add(patience); !heard && time.Now().Before(deadline); heard = hears(t, near, time.Second) {
		if _, err := from.WriteToUDPAddrPort([]byte("hello"), netip.AddrPortFrom(to, uint16(port))); err != nil {
			t.Fatal(err)
		}
	}
	if !heard {
		t.Error("the other end of the link received nothing")
	}
	for i, ear := range far {
		if hears(t, ear, 100*time.Millisecond) {
			t.Errorf("end %d of the other link received it too", i+1)
		}
	}
	// Removing one link does not affect the other.
	testenv.Must(t, rigs[0].Remove())
	rigs[0].Clean("after the first link's removal")
	sendTCP(t, rigs[1].stations[0], rigs[1].stations[1], 1<<16)
}

// testRemoval removes a link from its journal alone, twice, and creates it again.
func testRemoval(t *testing.T, d transport.Driver, o Options) {
	o.Shape = pfifo
	r := NewRig(t, d, o)
	for round := range 2 {
		r.Up()
		if r.state() == r.before {
			t.Fatal("the state does not show that the link is up: the check for leftovers checks nothing")
		}
		sendUDP(t, r.stations[0], r.stations[1], 100)
		for range 2 {
			if err := r.Remove(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		r.Clean("after removal")
	}
}

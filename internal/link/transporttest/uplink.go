// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/test/testenv"
)

// testBulk sends much data each way at once, with default offloads, to find
// segments that a driver damages or leaves unfinished.
func testBulk(t *testing.T, d transport.Driver) {
	r := NewRig(t, d, Options{Uplink: true})
	report := r.Up()
	for _, change := range report.Offloads {
		t.Logf("changed: %+v", change)
	}
	const size = 32 << 20
	port, outside := r.stations[0], r.stations[1]
	data := payload(size)
	errs := make(chan error, 2)
	for _, pair := range [][2]station{{port, outside}, {outside, port}} {
		go func() {
			took, err := transferTCP(pair[0], pair[1], data)
			t.Logf("%s to %s: %.0f Mbit/s", pair[0].ip, pair[1].ip, size*8/took.Seconds()/1e6)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// testHostTraffic checks that the host can still use its own interface while a
// port uses it, and that two links can share one.
func testHostTraffic(t *testing.T, d transport.Driver) {
	r := NewRig(t, d, Options{Uplink: true})
	r.Up()
	hostStation := station{ns: r.Spec.Uplinks()[0].Netns, name: uplinkName, ip: address(100, false).Addr()}
	outside := r.stations[1]
	sendTCP(t, hostStation, outside, 1<<16)
	sendTCP(t, outside, hostStation, 1<<16)

	second := NewRig(t, d, Options{Uplink: true})
	second.Spec.Ends[0].IP, second.Spec.Ends[0].MAC = address(7, false), mac(7)
	second.Spec.Ends[1] = r.Spec.Uplinks()[0]
	second.Up()
	other := station{ns: second.Spec.Ends[0].Netns, name: "f1u", ip: address(7, false).Addr()}
	sendTCP(t, other, outside, 1<<16)
	sendTCP(t, r.stations[0], outside, 1<<16)
	testenv.Must(t, second.Remove())
	sendTCP(t, r.stations[0], outside, 1<<16)
}

// testUplinkErrors checks that an unusable host interface is named, with the
// fix, before any change.
func testUplinkErrors(t *testing.T, d transport.Driver) {
	cases := []struct {
		name   string
		change func(*testing.T, *Rig)
		want   string
	}{
		{"missing", func(_ *testing.T, r *Rig) { r.Spec.Ends[1].Name = "eth7" }, "eth7"},
		{"down", func(t *testing.T, r *Rig) {
			testenv.Must(t, r.Spec.Ends[1].Netns.SetDown(uplinkName))
		}, "ip link set eth0 up"},
		{"MTU", func(_ *testing.T, r *Rig) { r.Spec.MTU = 1501 }, "ip link set eth0 mtu 1501"},
	}
	for _, c := range cases {
		r := NewRig(t, d, Options{Uplink: true})
		c.change(t, r)
		r.before = r.state()
		err := r.run(context.Background(), r.Steps(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		r.Clean("after a refused uplink")
	}
}

// testHostNetns uses an interface of the host's own namespace, as a chain does.
func testHostNetns(t *testing.T, d transport.Driver) {
	r := NewRig(t, d, Options{Uplink: true})
	played, outside := r.Spec.Uplinks()[0], r.stations[1]
	inner := host.Iface{Name: fmt.Sprintf("drt%08x", rand.Uint32()), MAC: mac(100), MTU: r.Spec.MTU}
	outer := host.Iface{Netns: outside.ns, Name: outsideName, MAC: mac(101), MTU: r.Spec.MTU}
	ours := host.LinkResource(inner.Netns, inner.Name, inner.MAC)
	t.Cleanup(func() { removeAll(t, ours) })
	removeAll(t, host.LinkResource(played.Netns, played.Name, mac(100)))
	for _, do := range []func() error{
		func() error { return host.CreateVeth(inner, outer) },
		func() error { return outside.ns.AddAddr(outsideName, address(101, false)) },
		func() error { return outside.ns.SetUp(outsideName) },
		func() error { return inner.Netns.SetUp(inner.Name) },
	} {
		testenv.Must(t, do())
	}
	r.Spec.Ends[1] = transport.End{Netns: host.HostNetns, Name: inner.Name, Uplink: true}
	r.before = r.state()
	r.Up()
	sendTCP(t, r.stations[0], outside, 1<<16)
	sendTCP(t, outside, r.stations[0], 1<<16)
	testenv.Must(t, r.Remove())
	r.Clean("after a link to the host's own interface")
}

func removeAll(t *testing.T, resources ...step.Resource) {
	t.Helper()
	runner := step.Runner{Removers: host.Removers()}
	if err := runner.Remove(context.Background(), resources); err != nil {
		t.Error(err)
	}
}

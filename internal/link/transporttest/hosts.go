// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
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
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/underlay"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// addHosts puts the ports of a tunnel on simulated hosts: the first on one,
// and the others on another, or each on its own. The underlay carries exactly
// the tunnel's MTU.
func (r *Rig) addHosts(o Options) {
	r.t.Helper()
	mtu := min(r.Spec.MTU+chain.VXLANOverhead, 65535)
	u := underlay.Spec{Chain: r.Spec.Chain, Dir: filepath.Join(r.dir, "hosts"), Hosts: chain.Hosts{Underlay: chain.Underlay{MTU: mtu, Rate: o.Rate}}}
	for i := range r.Spec.Ends {
		name := fmt.Sprintf("h%d", i+1)
		if i > 1 && !o.Apart {
			name = "h2"
		} else {
			u.Names = append(u.Names, name)
		}
		r.Spec.Ends[i].Host = name
	}
	if o.Row {
		inRow(&u, o.Rate)
	}
	runner := step.Runner{Journal: &r.hosts, Removers: transport.AllRemovers(r.driver)}
	testenv.Must(r.t, runner.Run(context.Background(), u.Build().Steps))
	for _, name := range u.Names {
		h, err := u.At(name)
		testenv.Must(r.t, err)
		r.Spec.Hosts = append(r.Spec.Hosts, h)
	}
	r.Spec.VNI = 1
}

// inRow puts lines between the hosts, from each to the next.
func inRow(u *underlay.Spec, rate units.Bitrate) {
	u.Underlay.Rate = 0
	for i := range u.Names {
		first := make([]int, len(u.Names))
		for j := range first {
			if first[j] = i; j < i {
				first[j] = i - 1
			}
		}
		first[i] = -1
		u.First = append(u.First, first)
		if i > 0 {
			u.Lines = append(u.Lines, chain.HostLine{Between: []string{u.Names[i-1], u.Names[i]}, Rate: rate})
		}
	}
}

// RunTunnel runs the parts of the suite for links between simulated hosts, in
// addition to the parts for all links.
func RunTunnel(t *testing.T, d transport.Driver) {
	require(t, d)
	openBefore, _ := leaks(t)
	t.Run("ThreeHosts", func(t *testing.T) { testTraffic(t, d, Options{Ports: 3, Apart: true}) })
	t.Run("HostsInARow", func(t *testing.T) { testTraffic(t, d, Options{Ports: 3, Apart: true, Row: true, Rate: 1e9}) })
	t.Run("Underlay", func(t *testing.T) { testUnderlay(t, d, Options{}) })
	t.Run("UnderlayRate", func(t *testing.T) { testUnderlayRate(t, d) })
	t.Run("SharedHosts", func(t *testing.T) { testSharedHosts(t, d) })
	checkLeaks(t, openBefore)
}

// testUnderlay checks that Build rejects a tunnel if its underlay cannot carry
// it, or if its hosts differ from its ports' hosts.
func testUnderlay(t *testing.T, d transport.Driver, o Options) {
	r := NewRig(t, d, o)
	r.Spec.MTU++
	if err := r.Try(r.Steps(), nil); err == nil || !strings.Contains(err.Error(), "raise the underlay's") {
		t.Errorf("one byte too many for the underlay: %v", err)
	}
	r.Clean("after the underlay was too narrow")
	r.Spec.MTU--
	for want, change := range map[string]func(*transport.Spec){
		"use transport bridge":         func(s *transport.Spec) { s.Hosts = s.Hosts[:1] },
		"which the link does not name": func(s *transport.Spec) { s.Ends[1].Host = "h9" },
		"number 0 is not within":       func(s *transport.Spec) { s.VNI = 0 },
	} {
		spec := r.Spec
		spec.Ends = slices.Clone(spec.Ends)
		change(&spec)
		if _, err := d.Build(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// testUnderlayRate checks that packets between hosts use the underlay, whose
// rate limits them. Only too fast is an error.
func testUnderlayRate(t *testing.T, d transport.Driver) {
	const rate, size = 16e6, 1 << 20
	r := NewRig(t, d, Options{Rate: rate})
	r.Up()
	least := time.Duration(size*8/rate*float64(time.Second)) / 2
	if took := sendTCP(t, r.stations[0], r.stations[1], size); took < least {
		t.Errorf("%d bytes took %s; the underlay's 16 Mbit/s would be twice %s", size, took, least)
	}
}

// testSharedHosts creates a second link between the same hosts. It checks that
// neither receives the other's broadcasts, and that each outlives the other.
func testSharedHosts(t *testing.T, d transport.Driver) {
	r := NewRig(t, d, Options{})
	first := r.Spec
	report := r.Up()
	second := *r
	second.Spec.Link, second.Spec.VNI = "n3", first.VNI+1
	second.Spec.Dir, second.Spec.Cgroup = filepath.Join(r.dir, "n3"), first.Cgroup.Child("n3")
	testenv.Must(t, os.Mkdir(second.Spec.Dir, 0o711))
	testenv.Must(t, second.Spec.Cgroup.Create(host.Limits{}))
	second.Spec.Ends, second.stations, second.made = slices.Clone(first.Ends), nil, nil
	for i := range second.Spec.Ends {
		e := &second.Spec.Ends[i]
		e.Name, e.MAC, e.IP = "n3", mac(10+i), netip.MustParsePrefix(fmt.Sprintf("198.51.100.%d/24", i+1))
		second.stations = append(second.stations, station{ns: e.Netns, name: e.Name, ip: e.IP.Addr()})
	}
	t.Cleanup(func() {
		if err := second.Remove(); err != nil {
			t.Error(err)
		}
	})
	if again := second.Up(); again.Datapath != report.Datapath {
		t.Errorf("one link has the datapath %q, the other %q", report.Datapath, again.Datapath)
	}
	sendTCP(t, r.stations[0], r.stations[1], 1<<16)
	sendTCP(t, second.stations[0], second.stations[1], 1<<16)
	// Both sockets are in one namespace: packets of the other link arrive at its port.
	near := second.stations[1].listenAny(t, 0)
	if _, err := second.stations[0].listenUDP(t).WriteToUDPAddrPort([]byte("hello"),
		netip.AddrPortFrom(netip.MustParseAddr("198.51.100.255"), near.LocalAddr().(*net.UDPAddr).AddrPort().Port())); err != nil {
		t.Fatal(err)
	}
	if !hears(t, near, patience) {
		t.Error("the other end of the second link did not receive a broadcast")
	}
	if hears(t, near, 100*time.Millisecond) {
		t.Error("it received a broadcast twice")
	}
	testenv.Must(t, second.Remove())
	sendTCP(t, r.stations[0], r.stations[1], 1<<16)
}

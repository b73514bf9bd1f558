// SPDX-License-Identifier: Apache-2.0

package underlay_test

import (
	"context"
	"errors"
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
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/underlay"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// world is a place to create an underlay; it implements transporttest.World.
type world struct {
	t    *testing.T
	spec underlay.Spec
	made []step.Resource
}

func (w *world) Append(r ...step.Resource) error {
	w.made = append(w.made, r...)
	return nil
}

func newWorld(t *testing.T, u chain.Underlay) *world {
	t.Helper()
	return worldOf(t, underlay.Spec{Hosts: chain.Hosts{Names: []string{"switch", "h2"}, Underlay: u}})
}

func worldOf(t *testing.T, spec underlay.Spec) *world {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "tc")
	dir, err := os.MkdirTemp("/run", "dray-test-")
	if err != nil {
		t.Fatal(err)
	}
	spec.Chain, spec.Dir = filepath.Base(dir), filepath.Join(dir, "hosts")
	w := &world{t: t, spec: spec}
	t.Cleanup(func() {
		w.remove()
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) Steps() []step.Step { return w.spec.Build().Steps }

func (w *world) Try(steps []step.Step, fault transporttest.Fault) error {
	runner := step.Runner{Journal: w, Removers: host.Removers(), Fault: fault}
	return runner.Run(context.Background(), steps)
}

func (w *world) Clean(when string) {
	w.t.Helper()
	if left, err := os.ReadDir(filepath.Dir(w.spec.Dir)); err != nil || len(left) > 0 {
		w.t.Errorf("%s, %v is left (%v)", when, left, err)
	}
	if points, err := host.MountsAt(w.spec.Dir); err != nil || len(points) > 0 {
		w.t.Errorf("%s, %v is mounted (%v)", when, points, err)
	}
}

func (w *world) remove() {
	w.t.Helper()
	runner := step.Runner{Removers: host.Removers()}
	if err := runner.Remove(context.Background(), w.made); err != nil {
		w.t.Error(err)
	}
}

var gigabit = chain.Underlay{Rate: 1e9, MTU: 1600}

func TestFaults(t *testing.T) {
	testenv.Root(t)
	transporttest.RunFaults(t, func(t *testing.T) transporttest.World { return newWorld(t, gigabit) })
}

// TestUnderlay creates an underlay, sends over it, and removes it.
func TestUnderlay(t *testing.T) {
	w := newWorld(t, gigabit)
	build := w.spec.Build()
	if err := w.Try(build.Steps, nil); err != nil {
		t.Fatal(err)
	}
	if qdiscs := build.Report.Qdiscs; len(qdiscs) != 4 || !strings.Contains(qdiscs[0].Text, "rate 1Gbit") {
		t.Errorf("reported is %+v", qdiscs)
	}
	a, err := w.spec.At("switch") // a name reserved for the underlay itself
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.spec.At("h2")
	if err != nil {
		t.Fatal(err)
	}
	ear, mouth := listen(t, b.Netns, b.Addr.Addr()), listen(t, a.Netns, a.Addr.Addr())
	to := ear.LocalAddr().(*net.UDPAddr).AddrPort()
	var n int
	var from netip.AddrPort
	// The kernel drops what address resolution takes too long for.
	for deadline := time.Now().Add(30 * time.Second); n == 0 && time.Now().Before(deadline); {
		if _, err := mouth.WriteToUDPAddrPort(make([]byte, 1600-28), to); err != nil {
			t.Fatal(err)
		}
		if err := ear.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, from, err = ear.ReadFromUDPAddrPort(make([]byte, 2000))
	}
	if err != nil || n != 1600-28 || from.Addr() != a.Addr.Addr() {
		t.Errorf("%d bytes from %v: %v", n, from, err)
	}
	if _, err := w.spec.At("h3"); err == nil {
		t.Error("the underlay has a third host")
	}
	w.remove()
	w.Clean("after removal")
}

func listen(t *testing.T, ns host.Netns, on netip.Addr) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := ns.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(on, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestDelay delays packets to each host, if the kernel can; else it expects a
// typed error and no leftovers.
func TestDelay(t *testing.T) {
	w := newWorld(t, chain.Underlay{Rate: 1e9, Delay: units.Duration(5 * time.Millisecond), MTU: 1600})
	delayed, ok := w.delayed()
	if !ok {
		return
	}
	if len(delayed) != 2 || !strings.Contains(delayed[0].Text, "delay 5ms") {
		t.Errorf("reported is %+v", delayed)
	}
}

// delayed builds a world with delays, and returns the qdiscs that delay packets. ok is false if
// the kernel cannot delay: then the error must be the typed one, and nothing is left.
func (w *world) delayed() (qdiscs []transport.QdiscState, ok bool) {
	w.t.Helper()
	build := w.spec.Build()
	err := w.Try(build.Steps, nil)
	if host.ProbeQdisc("netem") != nil {
		var lacks *host.Unsupported
		if !errors.As(err, &lacks) {
			w.t.Errorf("error %v is not the typed one", err)
		}
		w.Clean("after an unsupported qdisc")
		return nil, false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(build.Report.Qdiscs, func(q transport.QdiscState) bool { return q.Kind != "netem" }), true
}

// TestAddresses: no two hosts or tunnels share an address, however many there are.
func TestAddresses(t *testing.T) {
	s := underlay.Spec{}
	for i := range chain.MaxHosts {
		s.Names = append(s.Names, string(rune('a'+i)))
	}
	seen := map[netip.Addr]bool{}
	for _, name := range s.Names {
		h, err := s.At(name)
		if err != nil {
			t.Fatal(err)
		}
		all := []netip.Prefix{h.Addr}
		for _, vni := range []int{1, 2, transport.TunnelAddresses} {
			p, err := h.TunnelAddr(vni)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		for _, p := range all {
			if seen[p.Addr()] || !netip.MustParsePrefix("100.64.0.0/15").Contains(p.Addr().Next()) || p.Bits() != 15 {
				t.Errorf("host %s has %s", name, p)
			}
			seen[p.Addr()] = true
		}
		if _, err := h.TunnelAddr(transport.TunnelAddresses + 1); err == nil {
			t.Errorf("host %s has one address too many", name)
		}
	}
}

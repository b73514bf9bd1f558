// SPDX-License-Identifier: Apache-2.0

package underlay_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/underlay"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// row is three hosts on two lines, of which the second is slow, and one on none:
//
//	site ──1 Gb/s── edge ──100 Mb/s── core        far
func row() underlay.Spec {
	return underlay.Spec{
		Hosts: chain.Hosts{
			Names: []string{"site", "edge", "core", "far"}, Underlay: chain.Underlay{MTU: 1600},
			Lines: []chain.HostLine{{Between: []string{"site", "edge"}, Rate: 1e9}, {Between: []string{"core", "edge"}, Rate: 100e6}},
		},
		First: [][]int{{-1, 0, 0, -1}, {0, -1, 1, -1}, {1, 1, -1, -1}, {-1, -1, -1, -1}},
	}
}

func TestLineFaults(t *testing.T) {
	testenv.Root(t)
	transporttest.RunFaults(t, func(t *testing.T) transporttest.World { return worldOf(t, row()) })
}

// built is a world after its steps, with what they report.
func built(t *testing.T, spec underlay.Spec) (*world, *underlay.Report) {
	t.Helper()
	w := worldOf(t, spec)
	build := w.spec.Build()
	if err := w.Try(build.Steps, nil); err != nil {
		t.Fatal(err)
	}
	return w, build.Report
}

func (w *world) at(name string) transport.Host {
	w.t.Helper()
	h, err := w.spec.At(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// TestLines sends from one end of the row to the other: at most at the rate of the slower
// line, over the router in between, and past its host.
func TestLines(t *testing.T) {
	const size = 5 << 20
	w, report := built(t, row())
	var rates []string
	for _, q := range report.Qdiscs {
		_, rate, _ := strings.Cut(q.Text, " rate ")
		rate, _, _ = strings.Cut(rate, " ")
		rates = append(rates, strings.TrimPrefix(q.End, "the line from ")+" "+rate)
	}
	for i, want := range []string{"site to edge 1Gbit", "edge to site 1Gbit", "core to edge 100Mbit", "edge to core 100Mbit"} {
		if len(rates) != 4 || rates[i] != want {
			t.Fatalf("reported are %q, and the rate of %d is %s", rates, i, want)
		}
	}
	site, core := w.at("site"), w.at("core")
	router := host.Netns{Path: filepath.Join(w.spec.Dir, "router-edge.net")}
	before := received(t, w.at("edge").Netns, "eth0")
	took := sendTCP(t, site, core, size)
	least := time.Duration(size*8/100e6*float64(time.Second)) / 2
	if took < least {
		t.Errorf("%d bytes took %v, and the slower line's 100 Mbit/s would be twice %v", size, took, least)
	}
	if got := received(t, router, "line1"); got < size {
		t.Errorf("the router in between received %d bytes of %d", got, size)
	}
	if got := received(t, w.at("edge").Netns, "eth0") - before; got > 1000 {
		t.Errorf("the host in between received %d bytes", got)
	}
	w.remove()
	w.Clean("after removal")
}

// TestHostsOnLinesSeeTheirRouterOnly: a router answers for hosts to which lines lead, and
// for no other address, also not its own host's.
func TestHostsOnLinesSeeTheirRouterOnly(t *testing.T) {
	w, _ := built(t, row())
	site := w.at("site")
	for name, answers := range map[string]bool{"edge": true, "core": true, "far": false} {
		patience := 500 * time.Millisecond
		if answers {
			patience = 30 * time.Second
		}
		if got := resolves(t, site, w.at(name).Addr.Addr(), patience); got != answers {
			t.Errorf("host %s is found: %v", name, got)
		}
	}
	own, err := site.TunnelAddr(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, nothing := range []netip.Addr{own.Addr(), netip.MustParseAddr("192.0.2.1")} {
		if resolves(t, site, nothing, 500*time.Millisecond) {
			t.Errorf("the router answers for %s", nothing)
		}
	}
	if len(site.Gateway) == 0 || w.at("core").Gateway.String() == site.Gateway.String() {
		t.Errorf("the gateways are %v and %v", site.Gateway, w.at("core").Gateway)
	}
}

// TestLineDelay: a line is delayed by its delay and its length, if the kernel can; else the
// error is typed, and nothing is left.
func TestLineDelay(t *testing.T) {
	spec := row()
	spec.Lines[0].Length, spec.Lines[0].Delay = 1500, units.Duration(5*time.Millisecond) // 7.5 µs, rounded; tc prints two decimals
	w := worldOf(t, spec)
	delayed, ok := w.delayed()
	if !ok {
		return
	}
	if len(delayed) != 2 || !strings.Contains(delayed[1].Text, "delay 5.01ms") || !strings.Contains(delayed[1].Text, "rate 1Gbit") {
		t.Errorf("reported is %+v", delayed)
	}
	started := time.Now()
	sendTCP(t, w.at("site"), w.at("edge"), 1)
	if took := time.Since(started); took < 20*time.Millisecond {
		t.Errorf("two round trips over 5 ms each way took %v", took)
	}
}

// received is the bytes that an interface has received.
func received(t *testing.T, ns host.Netns, name string) (bytes int) {
	t.Helper()
	err := ns.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		for _, line := range strings.Split(string(text), "\n") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
				_, err = fmt.Sscan(rest, &bytes)
				return err
			}
		}
		return fmt.Errorf("no interface %s in %q", name, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// sendTCP sends that many bytes from one host to another, and waits until all are there.
func sendTCP(t *testing.T, from, to transport.Host, size int) time.Duration {
	t.Helper()
	var listener net.Listener
	err := to.Netns.Do(func() (err error) {
		listener, err = net.Listen("tcp4", netip.AddrPortFrom(to.Addr.Addr(), 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	arrived := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			if _, err = io.CopyN(io.Discard, conn, int64(size)); err == nil {
				_, err = conn.Write([]byte{1})
			}
		}
		arrived <- err
	}()
	started := time.Now()
	var conn net.Conn
	err = from.Netns.Do(func() (err error) {
		conn, err = net.DialTimeout("tcp4", listener.Addr().String(), 10*time.Second)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-arrived; err != nil {
		t.Fatal(err)
	}
	return time.Since(started)
}

// resolves reports whether the kernel of a host finds the hardware address of an address.
func resolves(t *testing.T, from transport.Host, addr netip.Addr, patience time.Duration) bool {
	t.Helper()
	mouth := listen(t, from.Netns, from.Addr.Addr())
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		// An address to which there is no route is an error.
		if _, err := mouth.WriteToUDPAddrPort([]byte("hello"), netip.AddrPortFrom(addr, 9)); err != nil {
			return false
		}
		known := false
		err := from.Netns.Do(func() error {
			table, err := os.ReadFile("/proc/thread-self/net/arp")
			for _, line := range strings.Split(string(table), "\n") {
				fields := strings.Fields(line)
				known = known || len(fields) > 3 && fields[0] == addr.String() && fields[2] == "0x2"
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if known {
			return true
		}
	}
	return false
}

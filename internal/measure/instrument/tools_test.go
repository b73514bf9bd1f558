// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// pair is two network namespaces joined by a veth pair, with an IPv4 and an
// IPv6 address each:
//
//	a: 10.9.0.1, fd09::1 ── veth, MTU 1500 ── b: 10.9.0.2, fd09::2
type pair struct{ a, b Endpoint }

func newPair(t *testing.T) pair {
	t.Helper()
	testenv.Root(t)
	dir, err := os.MkdirTemp("/run", "dray-test-instrument-")
	testenv.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := pair{a: endpoint(t, dir, "a", 1), b: endpoint(t, dir, "b", 2)}
	iface := func(e Endpoint, last byte) host.Iface {
		return host.Iface{Netns: e.Place.Netns, Name: "eth0", MTU: e.MTU, MAC: net.HardwareAddr{2, 0, 0, 0, 9, last}}
	}
	testenv.Must(t, host.CreateVeth(iface(p.a, 1), iface(p.b, 2)))
	for i, e := range []Endpoint{p.a, p.b} {
		for _, prefix := range []string{"10.9.0.%d/24", "fd09::%d/64"} {
			testenv.Must(t, e.Place.Netns.AddAddr("eth0", netip.MustParsePrefix(fmt.Sprintf(prefix, i+1))))
		}
		testenv.Must(t, e.Place.Netns.SetUp("eth0"))
	}
	for _, e := range []Endpoint{p.a, p.b} {
		testenv.Must(t, e.Place.Netns.WaitCarrier(context.Background(), "eth0"))
	}
	return p
}

func endpoint(t *testing.T, dir, name string, last int) Endpoint {
	t.Helper()
	path := filepath.Join(dir, name)
	resource := host.NamespaceResource(path)
	t.Cleanup(func() {
		if err := host.Removers()[resource.Kind](context.Background(), resource); err != nil {
			t.Error(err)
		}
	})
	testenv.Must(t, host.CreateNetns(path))
	return Endpoint{
		Name:  name + ".eth0",
		Place: host.Place{Netns: host.Netns{Path: path}},
		IP:    netip.AddrFrom4([4]byte{10, 9, 0, byte(last)}),
		Port:  "eth0",
		MTU:   1500,
	}
}

// v6 is the same pair with its IPv6 addresses.
func (p pair) v6() pair {
	p.a.IP, p.b.IP = netip.MustParseAddr("fd09::1"), netip.MustParseAddr("fd09::2")
	return p
}

// linkLocal is the same pair with link-local addresses.
func (p pair) linkLocal(t *testing.T) pair {
	t.Helper()
	for i, e := range []*Endpoint{&p.a, &p.b} {
		prefix := netip.MustParsePrefix(fmt.Sprintf("fe80::9:%d/64", i+1))
		testenv.Must(t, e.Place.Netns.AddAddr("eth0", prefix))
		e.IP = prefix.Addr()
	}
	return p
}

// inside lists the processes in the pair's namespaces.
func (p pair) inside(t *testing.T) []string {
	t.Helper()
	inodes := map[string]bool{}
	for _, e := range []Endpoint{p.a, p.b} {
		inode, err := e.Place.Netns.Inode()
		testenv.Must(t, err)
		inodes[fmt.Sprintf("net:[%d]", inode)] = true
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	testenv.Must(t, err)
	var found []string
	for _, dir := range dirs {
		if ns, err := os.Readlink(dir + "/ns/net"); err == nil && inodes[ns] {
			comm, _ := os.ReadFile(dir + "/comm")
			found = append(found, filepath.Base(dir)+" "+string(comm))
		}
	}
	return found
}

// empty fails the test if a process is left in the pair's namespaces. One that was killed
// takes a moment to end.
func (p pair) empty(t *testing.T) {
	t.Helper()
	left := p.inside(t)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); left = p.inside(t) {
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("processes left behind: %q", left)
	}
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/drayage/dray/test/testenv"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestVeth(t *testing.T) {
	testenv.Root(t)
	a := Iface{Netns: testNetns(t), Name: "f1u", MAC: mac(t, "02:00:00:00:00:0a"), MTU: 9000}
	b := Iface{Netns: testNetns(t), Name: "f1u", MAC: mac(t, "02:00:00:00:00:0b"), MTU: 1500}
	must(t, CreateVeth(a, b))
	for _, i := range []Iface{a, b} {
		s, err := i.Netns.ReadLink(i.Name)
		must(t, err)
		if s.Kind != "veth" || s.MAC.String() != i.MAC.String() || s.MTU != i.MTU || s.Up {
			t.Errorf("%s: %+v", i, s)
		}
		must(t, i.Netns.SetUp(i.Name))
	}
	must(t, a.Netns.AddAddr("f1u", netip.MustParsePrefix("192.0.2.1/24")))
	must(t, a.Netns.AddAddr("f1u", netip.MustParsePrefix("2001:db8::1/64")))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must(t, a.Netns.WaitCarrier(ctx, "f1u"))
	s, err := a.Netns.ReadLink("f1u")
	must(t, err)
	if !s.Up || !s.Carrier || !strings.Contains(strings.Join(prefixes(s.Addrs), " "), "192.0.2.1/24 2001:db8::1/64") {
		t.Errorf("%+v", s)
	}
	must(t, a.Netns.SetDown("f1u"))
	if err := CreateVeth(a, b); err == nil {
		t.Error("made the pair a second time")
	}
}

func prefixes(ps []netip.Prefix) []string {
	var s []string
	for _, p := range ps {
		s = append(s, p.String())
	}
	return s
}

func TestBridgeAndMacvlan(t *testing.T) {
	testenv.Root(t)
	ns, inside := testNetns(t), testNetns(t)
	br := Iface{Netns: ns, Name: "br0", MAC: mac(t, "02:00:00:00:01:00"), MTU: 1500}
	must(t, CreateBridge(br))
	p := Iface{Netns: ns, Name: "p0", MAC: mac(t, "02:00:00:00:01:01"), MTU: 1500}
	q := Iface{Netns: ns, Name: "p1", MAC: mac(t, "02:00:00:00:01:02"), MTU: 1500}
	must(t, CreateVeth(p, q))
	must(t, ns.SetMaster("p0", "br0"))
	if err := ns.SetMaster("p1", "no-such"); err == nil {
		t.Error("joined a bridge that is not there")
	}
	m := Iface{Netns: inside, Name: "n3", MAC: mac(t, "02:00:00:00:01:03"), MTU: 1400}
	must(t, CreateMacvlan(m, ns, "p1"))
	s, err := inside.ReadLink("n3")
	must(t, err)
	if s.Kind != "macvlan" || s.MAC.String() != m.MAC.String() || s.MTU != 1400 {
		t.Errorf("%+v", s)
	}
	if err := CreateMacvlan(m, ns, "no-such"); err == nil {
		t.Error("no error without the parent")
	}
}

// TestHub: it learns nothing, and its MTU does not follow its ports.
func TestHub(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	must(t, CreateHub(Iface{Netns: ns, Name: "br0", MTU: 1600}))
	state := func(name string) LinkState {
		t.Helper()
		s, err := ns.ReadLink(name)
		must(t, err)
		return s
	}
	near := Iface{Netns: ns, Name: "p0", MTU: 1400}
	far := Iface{Netns: testNetns(t), Name: "f1u", MTU: 1400}
	must(t, CreateVeth(near, far))
	if s := state("p0"); s.Master != 0 || s.Peer == 0 {
		t.Errorf("before it is a port: %+v", s)
	}
	must(t, ns.SetMaster("p0", "br0"))
	s, err := far.Netns.ReadLink("f1u")
	must(t, err)
	if p := state("p0"); p.Master != state("br0").Index || p.Peer != s.Index || s.Peer != p.Index {
		t.Errorf("the pair: %+v and %+v", p, s)
	}
	if got := state("br0").MTU; got != 1600 {
		t.Errorf("the MTU became %d, by a port's", got)
	}
	must(t, ns.withLink("br0", func(_ *netlink.Handle, l netlink.Link) error {
		if b := l.(*netlink.Bridge); b.AgeingTime == nil || *b.AgeingTime != 0 || b.MulticastSnooping == nil || *b.MulticastSnooping {
			t.Errorf("it learns: %+v", b)
		}
		return nil
	}))
}

func TestRefuseRoutes(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	must(t, CreateVeth(Iface{Netns: ns, Name: "f1u", MTU: 1500}, Iface{Netns: ns, Name: "other", MTU: 1500}))
	read := func(name string) string {
		var text []byte
		must(t, ns.Do(func() (err error) {
			text, err = os.ReadFile("/proc/sys/net/ipv6/conf/" + name + "/accept_ra")
			return err
		}))
		return strings.TrimSpace(string(text))
	}
	if read("f1u") == "0" {
		t.Skip("interfaces refuse router advertisements by default here")
	}
	must(t, ns.RefuseRoutes("f1u"))
	if own, other := read("f1u"), read("other"); own != "0" || other == "0" {
		t.Errorf("accept_ra is %s, and %s at another interface", own, other)
	}
	for _, name := range []string{"", "../all", "a/b", ".."} {
		if err := ns.RefuseRoutes(name); err == nil {
			t.Errorf("took the name %q", name)
		}
	}
}

// An interface whose MTU is too small for IPv6 has none that could be kept from it.
func TestSmallInterfacesHaveNoIPv6(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	must(t, CreateVeth(Iface{Netns: ns, Name: "f1u", MTU: leastIPv6MTU - 1}, Iface{Netns: ns, Name: "other", MTU: leastIPv6MTU}))
	for _, name := range []string{"f1u", "other"} {
		must(t, ns.NoOwnIPv6(name))
		must(t, ns.SetUp(name))
	}
	for _, name := range []string{"f1u", "other"} {
		if s, err := ns.ReadLink(name); err != nil || len(s.Addrs) > 0 {
			t.Errorf("%s has %v: %v", name, s.Addrs, err)
		}
	}
}

func TestRemoveLink(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	a := Iface{Netns: ns, Name: "a0", MAC: mac(t, "02:00:00:00:02:01"), MTU: 1500}
	b := Iface{Netns: ns, Name: "b0", MAC: mac(t, "02:00:00:00:02:02"), MTU: 1500}
	must(t, CreateVeth(a, b))

	namesake := LinkResource(ns, "a0", mac(t, "02:00:00:00:02:99"))
	must(t, removeLink(namesake))
	if there, err := ns.hasLink("a0"); err != nil || !there {
		t.Fatalf("a namesake with another MAC was removed (%v)", err)
	}
	if err := removeLink(LinkResource(ns, "lo", nil)); err == nil {
		t.Error("accepted a resource without a MAC address")
	}
	r := LinkResource(ns, a.Name, a.MAC)
	must(t, removeLink(r))
	for _, name := range []string{"a0", "b0"} {
		if there, err := ns.hasLink(name); err != nil || there {
			t.Errorf("%s is still there (%v)", name, err)
		}
	}
	must(t, removeLink(r)) // again
	must(t, removeNamespace(ns.Path))
	must(t, removeLink(r)) // and without its namespace
}

// TestLinkGoneMeanwhile: the peer's removal deletes the interface between look-up
// and removal.
func TestLinkGoneMeanwhile(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	must(t, CreateVeth(Iface{Netns: ns, Name: "a0", MTU: 1500}, Iface{Netns: ns, Name: "b0", MTU: 1500}))
	must(t, ns.withLink("a0", func(nl *netlink.Handle, l netlink.Link) error {
		must(t, nl.LinkDel(l))
		if err := ignoreGone(nl.LinkDel(l)); err != nil {
			t.Errorf("removal of an interface that has gone: %v", err)
		}
		return nil
	}))
}

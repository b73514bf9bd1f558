// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"

	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

func TestUplinksAmong(t *testing.T) {
	got := uplinksAmong([]netlink.Link{
		&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", EncapType: "loopback", Flags: net.FlagLoopback | net.FlagUp}},
		&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "ifb0", EncapType: "ether"}},
		&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun0", EncapType: "none"}},
		&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "eth0", EncapType: "ether", MTU: 1400, Flags: net.FlagUp}},
		&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "veth0", EncapType: "ether", MTU: 1500}},
	})
	want := []inventory.Interface{
		{Name: "eth0", Kind: "device", MTU: 1400, Up: true}, {Name: "veth0", Kind: "veth", MTU: 1500},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUplinksOfThisMachine(t *testing.T) {
	testenv.Root(t)
	interfaces, err := Uplinks()
	must(t, err)
	for _, i := range interfaces {
		if i.Name == "lo" || i.Name == "" || i.MTU <= 0 || i.Kind == "" {
			t.Errorf("%+v", i)
		}
	}
}

// TestUplinksOfANamespace expects every interface there.
func TestUplinksOfANamespace(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "unshare")
	if os.Getenv(ownMounts) == "" {
		unshared(t, "--net")
		return
	}
	must(t, CreateVeth(Iface{Name: "v0", MTU: 1400}, Iface{Name: "v1", MTU: 9000}))
	must(t, HostNetns.SetUp("v0"))
	own := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	for _, ip := range own {
		must(t, HostNetns.AddAddr("v0", netip.PrefixFrom(ip, 24)))
	}
	got, err := Uplinks()
	must(t, err)
	want := []inventory.Interface{
		{Name: "v0", Kind: "veth", MTU: 1400, Up: true, Stations: []inventory.Station{{IPs: own}}},
		{Name: "v1", Kind: "veth", MTU: 9000, Stations: []inventory.Station{{}}},
	}
	byName := cmpopts.SortSlices(func(a, b inventory.Interface) bool { return a.Name < b.Name })
	if diff := cmp.Diff(want, got, byName, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}

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

// TestNetworks: the ports of a bridge or bond are on its network, but not those of a bridge
// with VLANs, and not the interfaces that another kind joins.
func TestNetworks(t *testing.T) {
	vlans, none := true, false
	byIndex := map[int]netlink.Link{}
	for _, l := range []netlink.Link{
		&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1, Name: "eth0", MasterIndex: 2}},
		&netlink.Bond{LinkAttrs: netlink.LinkAttrs{Index: 2, Name: "bond0", MasterIndex: 3}},
		&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 3, Name: "br0"}, VlanFiltering: &none},
		&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 4, Name: "eth1", MasterIndex: 5}},
		&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 5, Name: "br1"}, VlanFiltering: &vlans},
		&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 6, Name: "eth2", MasterIndex: 7}},
		&netlink.Vrf{LinkAttrs: netlink.LinkAttrs{Index: 7, Name: "red"}},
		&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 8, Name: "eth3"}},
		&netlink.Bond{LinkAttrs: netlink.LinkAttrs{Index: 9, Name: "bond1", MasterIndex: 9}}, // as only a torn list could have it
	} {
		byIndex[l.Attrs().Index] = l
	}
	for index, want := range map[int]string{1: "br0", 2: "br0", 3: "br0", 4: "eth1", 6: "eth2", 8: "eth3", 9: "bond1"} {
		if got := networkOf(byIndex[index], byIndex); got != want {
			t.Errorf("%s is on the network of %s, not %s", byIndex[index].Attrs().Name, got, want)
		}
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
	macs := []net.HardwareAddr{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	must(t, CreateVeth(Iface{Name: "v0", MTU: 1400, MAC: macs[0]}, Iface{Name: "v1", MTU: 9000, MAC: macs[1]}))
	must(t, HostNetns.SetUp("v0"))
	own := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	for _, ip := range own {
		must(t, HostNetns.AddAddr("v0", netip.PrefixFrom(ip, 24)))
	}
	got, err := Uplinks()
	must(t, err)
	want := []inventory.Interface{
		{Name: "v0", Kind: "veth", MTU: 1400, Up: true, Network: "v0", Stations: []inventory.Station{{IPs: own, MAC: "02:00:00:00:00:01"}}},
		{Name: "v1", Kind: "veth", MTU: 9000, Network: "v1", Stations: []inventory.Station{{MAC: "02:00:00:00:00:02"}}},
	}
	byName := cmpopts.SortSlices(func(a, b inventory.Interface) bool { return a.Name < b.Name })
	if diff := cmp.Diff(want, got, byName, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}

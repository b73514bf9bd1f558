// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// TestVxlan makes a tunnel end outside its underlay's namespace, and adds its
// addresses.
func TestVxlan(t *testing.T) {
	testenv.Root(t)
	if err := ProbeVxlan(); err != nil {
		t.Skip(err)
	}
	under, inside := testNetns(t), testNetns(t)
	a := Iface{Netns: under, Name: "eth0", MAC: mac(t, "02:00:00:00:02:0a"), MTU: 1600}
	b := Iface{Netns: under, Name: "peer", MAC: mac(t, "02:00:00:00:02:0b"), MTU: 1600}
	must(t, CreateVeth(a, b))
	v := Vxlan{
		Iface:    Iface{Netns: inside, Name: "vxlan0", MAC: mac(t, "02:00:00:00:02:0c"), MTU: 1550},
		Underlay: under, Device: "eth0", Local: netip.MustParseAddr("192.0.2.1"), VNI: 7, Port: 8472,
	}
	must(t, CreateVxlan(v))
	s, err := inside.ReadLink("vxlan0")
	must(t, err)
	if s.Kind != "vxlan" || s.MTU != 1550 || s.MAC.String() != v.MAC.String() {
		t.Errorf("%+v", s)
	}
	if _, err := under.ReadLink("vxlan0"); err == nil {
		t.Error("it is in the underlay's namespace")
	}
	known, all := mac(t, "02:00:00:00:02:0d"), make(net.HardwareAddr, 6)
	b2, b3 := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	must(t, inside.AddForwarding("vxlan0", known, b2))
	must(t, inside.AddForwarding("vxlan0", all, b2))
	must(t, inside.AddForwarding("vxlan0", all, b3))
	table, err := inside.ReadForwarding("vxlan0")
	must(t, err)
	if got := table[known.String()]; !slices.Equal(got, []netip.Addr{b2}) {
		t.Errorf("%s is sent to %v", known, got)
	}
	if got := table[all.String()]; len(got) != 2 || !slices.Contains(got, b2) || !slices.Contains(got, b3) {
		t.Errorf("broadcasts are sent to %v", got)
	}
	if err := CreateVxlan(v); err == nil {
		t.Error("made a second end of the same name")
	}
}

// TestForward moves a tunnel end's peer: address and VNI change in place.
func TestForward(t *testing.T) {
	testenv.Root(t)
	if err := ProbeVxlan(); err != nil {
		t.Skip(err)
	}
	under := testNetns(t)
	must(t, CreateVeth(Iface{Netns: under, Name: "eth0", MTU: 1600}, Iface{Netns: under, Name: "peer", MTU: 1600}))
	file, err := NewNetns()
	must(t, err)
	defer file.Close()
	inside := OfFile(file)
	must(t, CreateVxlan(Vxlan{
		Iface: Iface{Netns: inside, Name: "vxlan0", MTU: 1550}, Underlay: under, Device: "eth0", Local: netip.MustParseAddr("192.0.2.1"), VNI: 7, Port: 8472,
	}))
	known := mac(t, "02:00:00:00:02:0d")
	for _, to := range []TunnelEnd{{netip.MustParseAddr("192.0.2.2"), 8}, {netip.MustParseAddr("192.0.2.2"), 8}, {netip.MustParseAddr("192.0.2.2"), 7}, {netip.MustParseAddr("192.0.2.3"), 9}} {
		must(t, inside.Forward("vxlan0", known, to))
		must(t, inside.withLink("vxlan0", func(nl *netlink.Handle, l netlink.Link) error {
			table, err := nl.NeighList(l.Attrs().Index, unix.AF_BRIDGE)
			if len(table) != 2 {
				t.Errorf("%d entries: %v", len(table), table)
			}
			for _, e := range table {
				if addr, _ := netip.AddrFromSlice(e.IP); addr.Unmap() != to.Addr || cmp.Or(e.VNI, 7) != to.VNI {
					t.Errorf("%s is sent to %s with VNI %d, want %+v", e.HardwareAddr, e.IP, e.VNI, to)
				}
			}
			return err
		}))
	}
}

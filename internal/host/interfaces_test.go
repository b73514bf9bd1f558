// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/drayage/dray/internal/spec/inventory"
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
	interfaces, err := Uplinks()
	must(t, err)
	for _, i := range interfaces {
		if i.Name == "lo" || i.Name == "" || i.MTU <= 0 || i.Kind == "" {
			t.Errorf("%+v", i)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/dpdk"
)

// TestScript: a port's name may be an ip(8) keyword, and addresses that no kernel
// has are reported.
func TestScript(t *testing.T) {
	got := script([]port{
		{name: "up", mtu: 1500, addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fe80::1/64")}},
		{name: "eth0", mtu: 9000, addrs: []netip.Prefix{netip.MustParsePrefix("2001:db8::1/64")},
			neighbours: []dpdk.Neighbour{{IP: netip.MustParseAddr("2001:db8::2"), MAC: "02:00:00:00:00:02"}}},
	})
	const want = `ip link set lo up
ip link set dev eth0 name dray-nic0
ip link set dev eth1 name dray-nic1
ip link set dev dray-nic0 name up mtu 1500
ip link set dev up up
ip addr add 10.0.0.1/24 dev up
ip link set dev dray-nic1 name eth0 mtu 9000
ip link set dev eth0 up
ip addr add 2001:db8::1/64 dev eth0 nodad
ip neigh replace 2001:db8::2 lladdr 02:00:00:00:00:02 dev eth0
`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if strings.Contains(got, "fe80") {
		t.Error("an address that the kernel makes itself is added")
	}
}

// TestDeviceScript: an application's device is taken from the kernel, and is no
// interface; a machine without such ports keeps its memory.
func TestDeviceScript(t *testing.T) {
	ports := []port{{name: "n4", mtu: 1500}, {name: "n3", slot: 0x1e}, {name: "n6", slot: 0x1d}}
	if got := script(ports); strings.Contains(got, "eth1") || strings.Contains(got, "n3") {
		t.Errorf("a device is configured as an interface: %s", got)
	}
	got := deviceScript(ports, 64<<20)
	for _, want := range []string{"pages=32\n", "driver=uio_pci_generic\n", "\nhand_over 0000:00:1e.0\nhand_over 0000:00:1d.0\n"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("no %q, or several, in %s", want, got)
		}
	}
	if got := deviceScript(ports[:1], 0); got != "" {
		t.Errorf("without devices: %s", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/dpdk"
)

// TestScript: a port's name may be a word of ip(8), and addresses that no kernel has
// are told.
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

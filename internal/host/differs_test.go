// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"net/netip"
	"testing"
)

// TestWhatOfAnInterfaceDiffers: what others add is no difference.
func TestWhatOfAnInterfaceDiffers(t *testing.T) {
	mac := func(last byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, last} }
	ip, other := netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.9/24")
	made := Iface{MAC: mac(1), MTU: 1500}
	for want, s := range map[string]LinkState{
		"":                                 {MAC: mac(1), MTU: 1500, Up: true, Addrs: []netip.Prefix{other, ip}},
		"is down":                          {MAC: mac(1), MTU: 1500, Addrs: []netip.Prefix{ip}},
		"has an MTU of 1400, not 1500":     {MAC: mac(1), MTU: 1400, Up: true, Addrs: []netip.Prefix{ip}},
		"has lost its address 10.0.0.1/24": {MAC: mac(1), MTU: 1500, Up: true, Addrs: []netip.Prefix{other}},
		"has the MAC address 02:00:00:00:00:02, not 02:00:00:00:00:01": {MAC: mac(2), MTU: 1500, Up: true, Addrs: []netip.Prefix{ip}},
	} {
		if got := s.Differs(made, ip); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	if got := (&LinkState{MAC: mac(1), MTU: 1500, Up: true}).Differs(made, netip.Prefix{}); got != "" {
		t.Errorf("without an address: %q", got)
	}
}

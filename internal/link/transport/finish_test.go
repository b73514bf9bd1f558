// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
)

// TestCompareNotices: reading back detects a difference in each property.
func TestCompareNotices(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	ip := netip.MustParsePrefix("192.0.2.1/24")
	spec, end := Spec{MTU: 1500}, End{Name: "f1u", MAC: mac, IP: ip, Queues: 2}
	good := func() host.LinkState {
		return host.LinkState{MAC: mac, MTU: 1500, Up: true, Queues: 2, Addrs: []netip.Prefix{ip}}
	}
	if err := compare(spec, end, good()); err != nil {
		t.Errorf("a matching port is rejected: %v", err)
	}
	cases := map[string]func(*host.LinkState){
		"MAC":       func(s *host.LinkState) { s.MAC = net.HardwareAddr{2, 0, 0, 0, 0, 2} },
		"MTU":       func(s *host.LinkState) { s.MTU = 1400 },
		"down":      func(s *host.LinkState) { s.Up = false },
		"queues":    func(s *host.LinkState) { s.Queues = 1 },
		"addresses": func(s *host.LinkState) { s.Addrs = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/25")} },
	}
	for name, change := range cases {
		s := good()
		change(&s)
		if err := compare(spec, end, s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestSwitchMAC: links of one chain, and ends of one link, never collide.
func TestSwitchMAC(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []Spec{{Chain: "a", Link: "b"}, {Chain: "a", Link: "c"}, {Chain: "ab"}, {Link: "ab"}} {
		for _, role := range []string{"p1", "p2"} {
			mac := s.SwitchMAC(role)
			if mac[0]&3 != 2 || seen[mac.String()] || mac.String() != s.SwitchMAC(role).String() {
				t.Errorf("%+v %s has %s", s, role, mac)
			}
			seen[mac.String()] = true
		}
	}
}

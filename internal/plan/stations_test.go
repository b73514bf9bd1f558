// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
)

// uplinked is a chain of one port on eth0 of vfHost, which has a station for another chain's
// port, and the host's own.
func uplinked() (*chain.Chain, *inventory.Inventory) {
	c := pair()
	c.Links[0].Transport = "sr-iov"
	c.Functions, c.Links[0].Ends = c.Functions[:1], []chain.End{end("a", "p0"), {Uplink: "eth0"}}
	inv := vfHost()
	inv.Interfaces[0].Stations = []inventory.Station{
		{IPs: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")}, MAC: "02:00:00:00:00:02"},
		{Chain: "one", Port: "upf.n6", IPs: []netip.Addr{netip.MustParseAddr("192.0.2.10")}, MAC: "02:00:00:00:00:0a"},
		{Chain: "auto", Port: "upf.n6", IPs: []netip.Addr{netip.MustParseAddr("198.18.0.1")}},
	}
	return c, inv
}

// TestStations: a port gets no address of another chain's port, or of the host, on its
// uplink, whatever the prefix length.
func TestStations(t *testing.T) {
	for given, want := range map[string]string{
		"192.0.2.10/24":     "link ab: ip 192.0.2.10 of a.p0: the port upf.n6 of chain one has this address on eth0; give a.p0 another ip, or take the other chain down: dray down one",
		"192.0.2.10/28":     "the port upf.n6 of chain one",
		"192.0.2.2/24":      "link ab: ip 192.0.2.2 of a.p0: this host has this address on eth0; give a.p0 another ip",
		"2001:db8::2/64":    "this host",
		"2001:db8::10/64":   "",
		"192.0.2.11/24":     "",
		"02:00:00:00:00:0a": "link ab: mac 02:00:00:00:00:0a of a.p0: the port upf.n6 of chain one has this address on eth0; give a.p0 another mac",
		"02:00:00:00:00:02": "link ab: mac 02:00:00:00:00:02 of a.p0: this host has this address on eth0; give a.p0 another mac",
		"02:00:00:00:00:0b": "",
	} {
		c, inv := uplinked()
		field, port := "mac", &c.Functions[0].Ports[0]
		if strings.Contains(given, "/") {
			field, port.IP = "ip", prefix(given)
		} else {
			port.MAC = chain.MAC(given)
		}
		port.FieldPos = map[string]parse.Position{field: {File: "f", Line: 7}}
		if want == "" {
			mustPlan(t, c, inv)
			continue
		}
		c.Policy.OnInfeasible = chain.Warn // which is no way around it
		v := mustViolate(t, c, inv)
		if text := v.String(); !strings.HasPrefix(text, want) && !strings.Contains(text, ": "+want) || v.Pos.Line != 7 {
			t.Errorf("%s: line %d: %s", given, v.Pos.Line, text)
		}
		c.Links[0].Ends[1].Uplink = "eth1" // another network
		mustPlan(t, c, inv)
	}
}

// TestAssignedIPsAvoidStations: two chains without addresses can share an uplink.
func TestAssignedIPsAvoidStations(t *testing.T) {
	c, inv := uplinked()
	if ip := mustPlan(t, c, inv).Links[0].Ends[0].IP; ip != prefix("198.18.0.2/24") {
		t.Errorf("a.p0 gets %s", ip)
	}
}

// TestStationsOfABridge: an interface has the stations of the bridge that it is a port of, and
// of the bridge's other ports.
func TestStationsOfABridge(t *testing.T) {
	c, inv := uplinked()
	inv.Interfaces[0].Network, inv.Interfaces[1].Network = "br0", "br0"
	inv.Interfaces = append(inv.Interfaces, inventory.Interface{Name: "br0", Network: "br0", Stations: []inventory.Station{
		{IPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
	}})
	for _, uplink := range []string{"eth0", "eth1"} {
		for ip, want := range map[string]string{"192.0.2.1/24": "this host", "192.0.2.10/24": "the port upf.n6 of chain one"} {
			c.Links[0].Ends[1].Uplink, c.Functions[0].Ports[0].IP = uplink, prefix(ip)
			if v := mustViolate(t, c, inv); v.Reason != want+" has this address on "+uplink {
				t.Errorf("%s on %s: %s", ip, uplink, v)
			}
		}
	}
	c.Links[0].Ends[1].Uplink, inv.Interfaces[2].VFs = "eth2", 1 // which is on its own
	mustPlan(t, c, inv)
}

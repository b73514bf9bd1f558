// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
)

// star makes a chain of n links, each from the function "hub" to a different function.
func star(n int) *chain.Chain {
	c := pair()
	c.Functions, c.Links = []chain.Function{function("hub")}, nil
	for i := range n {
		name := fmt.Sprintf("f%d", i)
		c.Functions[0].Ports = append(c.Functions[0].Ports, port(name))
		c.Functions = append(c.Functions, function(name, port("p0")))
		c.Links = append(c.Links, chain.Link{
			Name:      name,
			Ends:      []chain.End{end("hub", name), end(name, "p0")},
			Transport: chain.TransportAuto,
			Isolation: chain.IsolationLink,
		})
	}
	return c
}

func TestAssignedIPs(t *testing.T) {
	c := star(4)
	c.Functions[0].Ports[1].IP = prefix("10.1.0.1/30")    // the other end gets the other host address
	c.Functions[0].Ports[3].IP = prefix("198.18.1.77/16") // so every /24 below 198.19 is avoided
	p := mustPlan(t, c, loadInventory(t, "vm2"))
	want := map[string]string{
		"hub.f0": "198.19.0.1/24", "f0.p0": "198.19.0.2/24",
		"hub.f1": "10.1.0.1/30", "f1.p0": "10.1.0.2/30",
		"hub.f2": "198.19.1.1/24", "f2.p0": "198.19.1.2/24",
		"hub.f3": "198.18.1.77/16", "f3.p0": "198.18.0.1/16",
	}
	for _, l := range p.Links {
		for _, e := range l.Ends {
			if got := e.IP.String(); got != want[e.String()] {
				t.Errorf("%s: %s, want %s", e, got, want[e.String()])
			}
		}
	}
}

func TestAssignedIPsByFamilyAndLength(t *testing.T) {
	for given, want := range map[string]string{
		"10.0.0.1/24":   "10.0.0.2/24",
		"10.0.0.9/24":   "10.0.0.1/24",
		"10.0.0.0/31":   "10.0.0.1/31",
		"fd00::1/64":    "fd00::2/64",
		"fd00::8/64":    "fd00::1/64",
		"fd00::1/127":   "fd00::/127",
		"10.0.0.254/24": "10.0.0.1/24",
	} {
		c := pair()
		c.Functions[0].Ports[0].IP = prefix(given)
		if got := mustPlan(t, c, loadInventory(t, "vm2")).Links[0].Ends[1].IP.String(); got != want {
			t.Errorf("next to %s: %s, want %s", given, got, want)
		}
	}
}

func TestAddressesRunOut(t *testing.T) {
	c := pair()
	c.Functions[0].Ports[0].IP = prefix("10.0.0.1/32")
	if v := mustViolate(t, c, loadInventory(t, "vm2")); v.Constraint != "ip of b.p0" || !v.Hard {
		t.Errorf("%+v", v)
	}
	c = star(1)
	c.Functions[0].Tuns = []chain.Tun{{Name: "all", IP: prefix("198.18.0.1/15")}}
	if v := mustViolate(t, c, loadInventory(t, "vm2")); v.Subject != "link f0" || !strings.Contains(v.Reason, "198.18.0.0/15 has no room for another 2 ports") {
		t.Errorf("%+v", v)
	}
}

// TestALinkOutgrowsItsSubnet: what helps is another subnet, which the file names, or the planner
// assigns once the chain is down.
func TestALinkOutgrowsItsSubnet(t *testing.T) {
	for fix, named := range map[string]map[string]parse.Position{
		"take the chain down and up again, which assigns addresses of a larger subnet: dray down pair": nil,
		"give the port an ip, or the other ports a larger subnet":                                      {"ip": {Line: 7}},
	} {
		c := pair()
		c.Functions, c.Links[0].Ends = c.Functions[:1], nil
		c.Functions[0].Ports = nil
		for i := range 255 {
			p := port(fmt.Sprintf("p%d", i))
			if i < 254 { // as it came up
				p.IP, p.FieldPos = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}), 24), named
			}
			c.Functions[0].Ports = append(c.Functions[0].Ports, p)
			c.Links[0].Ends = append(c.Links[0].Ends, end("a", p.Name))
		}
		v := mustViolate(t, c, loadInventory(t, "vm2"))
		if v.Constraint != "ip of a.p254" || v.Fix != fix {
			t.Errorf("%+v", v)
		}
	}
}

// TestTwoChainsOfManyPortsShareAnUplink: the subnet has room for the ports of the other chain.
func TestTwoChainsOfManyPortsShareAnUplink(t *testing.T) {
	c, inv := pair(), loadInventory(t, "vm2")
	c.Functions, c.Links[0].Ends = []chain.Function{function("hub")}, []chain.End{{Uplink: "eth0"}}
	var of []netip.Addr
	for i := range 200 {
		name := fmt.Sprintf("p%d", i)
		c.Functions[0].Ports = append(c.Functions[0].Ports, port(name))
		c.Links[0].Ends = append(c.Links[0].Ends, end("hub", name))
		of = append(of, netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}))
	}
	inv.Interfaces[0].Stations = []inventory.Station{{Chain: "one", IPs: of}}
	for _, e := range mustPlan(t, c, inv).Links[0].Ends[1:] {
		if e.IP.Bits() != 23 || slices.Contains(of, e.IP.Addr()) {
			t.Errorf("%s has %s", e, e.IP)
		}
	}
}

// TestAddressesOfManyPorts: links of more than a /24, and more links than there are /24,
// have addresses, and no two subnets overlap.
func TestAddressesOfManyPorts(t *testing.T) {
	a := &addresses{used: map[netip.Addr]bool{}, next: benchmarking.Addr(), small: firstSmall}
	a.named = []netip.Prefix{prefix("198.18.8.7/32"), prefix("198.19.128.9/32")}
	var taken []netip.Prefix
	for i, ports := range slices.Concat([]int{2, 254, 255, 2, 1022, 3}, slices.Repeat([]int{2}, 4000)) {
		subnet, ok := a.nextSubnet(ports)
		if !ok {
			t.Fatalf("link %d has no subnet", i)
		}
		if overlaps := slices.ContainsFunc(a.named, subnet.Overlaps); overlaps || subnet != subnet.Masked() || !benchmarking.Contains(lastAddr(subnet)) {
			t.Fatalf("link %d gets %s", i, subnet)
		}
		for range ports {
			if _, ok := a.take(subnet); !ok {
				t.Fatalf("%d ports do not fit into %s", ports, subnet)
			}
		}
		taken = append(taken, subnet)
	}
	for i, subnet := range taken[1:] { // they ascend in each of the two parts
		if before := taken[i]; subnet.Overlaps(before) {
			t.Errorf("%s overlaps %s", subnet, before)
		}
	}
	for i, want := range []string{"198.18.0.0/24", "198.18.1.0/24", "198.18.2.0/23", "198.18.4.0/24", "198.18.12.0/22", "198.18.16.0/24"} {
		if taken[i].String() != want {
			t.Errorf("link %d has %s, not %s", i, taken[i], want)
		}
	}
}

func TestMACs(t *testing.T) {
	inv := loadInventory(t, "vm2")
	first := mustPlan(t, pair(), inv)
	derived := first.Links[0].Ends[0].MAC
	if hw := derived.HardwareAddr(); len(hw) != 6 || hw[0] != 0x02 {
		t.Errorf("derived address %q is not locally administered unicast", derived)
	}

	c := pair()
	c.Name = "other"
	if got := mustPlan(t, c, inv).Links[0].Ends[0].MAC; got == derived {
		t.Errorf("two chains share the address %s", got)
	}

	c = pair()
	c.Functions[1].Ports[0].MAC = chain.MAC(strings.ToUpper(string(derived)))
	p := mustPlan(t, c, inv)
	if got := p.Links[0].Ends[0].MAC; got == derived {
		t.Errorf("a derived address collides with the named one: %s", got)
	}
	if got := p.Links[0].Ends[1].MAC; got != c.Functions[1].Ports[0].MAC {
		t.Errorf("named address %s became %s", c.Functions[1].Ports[0].MAC, got)
	}
}

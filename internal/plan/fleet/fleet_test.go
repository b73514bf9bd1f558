// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/manifest"
)

// published is an inventory as in an object.
func published(inventory []byte) map[string]string {
	return map[string]string{manifest.KeyInventory: string(inventory)}
}

func twoFunctions(t *testing.T, requires string) *chain.Chain {
	t.Helper()
	c, err := manifest.Parse("f1", []byte(`{"functions":[{"name":"cu","ports":[{"name":"f1u","face":"native"}]},
		{"name":"du","ports":[{"name":"f1u","face":"native"}]}],
		"links":[{"name":"f1u","ends":["cu.f1u","du.f1u"],"requires":{`+requires+`}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// node is a node that can make links of that transport.
func node(t *testing.T, name, transport string) fleet.Node {
	t.Helper()
	inv := inventory.Inventory{
		Host: inventory.Host{Hostname: "host-of-" + name, CPUs: []int{0, 1}, MemoryTotal: 1 << 33, MemoryFree: 1 << 33},
		Transports: []inventory.Transport{{
			Item: inventory.Item{Name: transport, Status: inventory.OK},
			Caps: inventory.Caps{Faces: []string{"native"}, Isolation: "link", MinEnds: 2, MaxEnds: 2, MaxMTU: 9000},
		}},
	}
	data, err := json.Marshal(inv)
	if err != nil {
		t.Fatal(err)
	}
	return fleet.ReadNode(name, "dray-inventory-"+name, published(data))
}

func TestNodesHaveTheNamesOfTheirOwners(t *testing.T) {
	inv := []byte(`{"host":{"hostname":"localhost"}}`)
	for want, n := range map[string]fleet.Node{
		"n1":        fleet.ReadNode("n1", "dray-inventory-n1", published(inv)),
		"localhost": fleet.ReadNode("", "dray-inventory-n1", published(inv)),
		"some-map":  fleet.ReadNode("", "some-map", published([]byte(`{}`))),
	} {
		if n.Name != want || n.Fault != "" || n.Inventory.Host.Hostname != want {
			t.Errorf("%+v, want %s", n, want)
		}
	}
	if n := fleet.ReadNode("n4", "m", published([]byte("{"))); n.Name != "n4" || !strings.HasPrefix(n.Fault, "its inventory cannot be read: ") {
		t.Errorf("%+v", n)
	}
}

func TestLargestGroupIsChosen(t *testing.T) {
	c := twoFunctions(t, `"latency":"1ms"`)
	broken := fleet.ReadNode("n9", "m", published([]byte("{")))
	all := fleet.Plan(c, []fleet.Node{broken, node(t, "n2", "shm"), node(t, "n0", "memif"), node(t, "n1", "shm")})
	choice := fleet.Choose(all)
	const want = "on n1, n2; not on n0: its links would differ from those on n1; n9: its inventory cannot be read: "
	if got := choice.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
	if choice.Plan == nil || choice.Plan.Links[0].Transport != "shm" || all[0].Node != "n0" {
		t.Errorf("%+v of %+v", choice, all)
	}
}

func TestInfeasibleEverywhere(t *testing.T) {
	all := fleet.Plan(twoFunctions(t, `"latency":"1ns"`), []fleet.Node{node(t, "n2", "shm"), node(t, "n1", "shm")})
	choice := fleet.Choose(all)
	if got := choice.String(); choice.Plan != nil || !strings.HasPrefix(got, "n1, n2: link f1u: latency ≤ 1ns at p99: ") || strings.Contains(got, ". ") {
		t.Errorf("%+v: %s", choice, got)
	}
	if p := all[0].Plan; p == nil || len(p.Violations) != 1 || p.Violations[0].Position != "" {
		t.Errorf("the plan of an infeasible chain is %+v", p)
	}
}

// A link that is expected to miss a requirement between nodes crosses them only if the chain says so.
func TestWarnHoldsBetweenNodes(t *testing.T) {
	n := node(t, "n1", "shm")
	n.Network = &fleet.Network{MTU: 9000}
	tunnel := n.Inventory.Transports[0]
	tunnel.Name, tunnel.Caps.Tunnel = "vxlan", true
	n.Inventory.Transports = append(n.Inventory.Transports, tunnel)
	for policy, crosses := range map[chain.OnInfeasible]bool{chain.Refuse: false, chain.Warn: true} {
		c := twoFunctions(t, `"latency":"100us"`)
		c.Policy.OnInfeasible = policy
		across := fleet.Plan(c, []fleet.Node{n})[0].Across
		if l := across.Link("f1u"); (l != nil) != crosses || crosses != (across.Why["f1u"] == "") || !crosses && !strings.Contains(across.Why["f1u"], "latency ≤ 100us") {
			t.Errorf("%s: %+v", policy, across)
		}
	}
}

// A device of the application cannot become another one, so its link crosses no nodes.
func TestDevicesOfApplicationsDoNotCross(t *testing.T) {
	n := node(t, "n1", "memif")
	n.Network = &fleet.Network{MTU: 9000}
	n.Inventory.DPDK = []inventory.Item{{Name: "net_dray", Status: inventory.OK}}
	n.Inventory.Transports[0].Caps.Faces = []string{"dpdk"}
	tunnel := n.Inventory.Transports[0]
	tunnel.Name, tunnel.Caps.Tunnel, tunnel.Caps.Faces = "vxlan", true, []string{"netdev", "native", "dpdk"}
	n.Inventory.Transports = append(n.Inventory.Transports, tunnel)
	c := twoFunctions(t, "")
	for i := range c.Functions {
		c.Functions[i].Ports[0].Face = chain.FaceDPDK
	}
	planned := fleet.Plan(c, []fleet.Node{n})[0]
	if planned.Refusal != "" || planned.Plan.Links[0].Transport != "memif" {
		t.Fatalf("%+v", planned)
	}
	if why := planned.Across.Why["f1u"]; planned.Across.Link("f1u") != nil || !strings.Contains(why, "devices of memif") {
		t.Errorf("%+v", planned.Across)
	}
}

// A switch keeps the applications' devices, so its links cross nodes, if these have one.
func TestLinksOfSwitchesCross(t *testing.T) {
	n := node(t, "n1", "ovs-dpdk")
	n.Network = &fleet.Network{MTU: 9000}
	n.Inventory.Transports[0].Caps.Faces = []string{"dpdk"}
	for _, name := range []string{"ovs-dpdk-vxlan", "vxlan"} {
		tunnel := n.Inventory.Transports[0]
		tunnel.Name, tunnel.Caps.Tunnel, tunnel.Caps.Rank = name, true, len(name) // vxlan is the faster one
		n.Inventory.Transports = append(n.Inventory.Transports, tunnel)
	}
	c := twoFunctions(t, `"mtu":1500`)
	for i := range c.Functions {
		c.Functions[i].Ports[0].Face = chain.FaceDPDK
	}
	for mtu, why := range map[int]string{0: "dray-switch does not run on n1", 1500: "at most 1450 bytes", 1550: ""} {
		n.Switch = nil
		if mtu > 0 {
			n.Switch = &fleet.Network{MTU: mtu}
		}
		planned := fleet.Plan(c, []fleet.Node{n})[0]
		l := planned.Across.Link("f1u")
		if (l != nil) != (why == "") || !strings.Contains(planned.Across.Why["f1u"], why) || l != nil && l.Transport != "ovs-dpdk-vxlan" {
			t.Errorf("%d: %+v", mtu, planned.Across)
		}
	}
}

// A limit crosses nodes, and classes do not: only memory of one node has them.
func TestQueuesOfMemoryDoNotCross(t *testing.T) {
	n := node(t, "n1", "shm")
	n.Network = &fleet.Network{MTU: 9000}
	n.Inventory.Qdiscs = []inventory.Item{{Name: "tbf", Status: inventory.OK}}
	tunnel := n.Inventory.Transports[0]
	tunnel.Name, tunnel.Caps.Tunnel, tunnel.Caps.Shapes, tunnel.Caps.Rank = "vxlan", true, true, 9
	n.Inventory.Transports[0].Caps.PortQueues = true
	n.Inventory.Transports = append(n.Inventory.Transports, tunnel)
	for name, c := range map[string]struct{ link, port *chain.Qdisc }{
		"":                     {&chain.Qdisc{Kind: "tbf", Rate: 1e6}, nil},
		"qdisc prio with":      {&chain.Qdisc{Kind: "prio", Classes: []chain.Class{{Name: "a"}}}, nil},
		"qdisc codel,":         {nil, &chain.Qdisc{Kind: "codel"}},
		"qdisc tbf over codel": {&chain.Qdisc{Kind: "tbf", Rate: 1e6, Child: &chain.Qdisc{Kind: "codel"}}, nil},
	} {
		f1 := twoFunctions(t, "")
		f1.Links[0].QoS, f1.Functions[1].Ports[0].QoS = c.link, c.port
		planned := fleet.Plan(f1, []fleet.Node{n})[0]
		if planned.Refusal != "" || planned.Plan.Links[0].Transport != "shm" {
			t.Fatalf("%q: %+v", name, planned)
		}
		if why := planned.Across.Why["f1u"]; (planned.Across.Link("f1u") != nil) != (name == "") || !strings.Contains(why, name) || name != "" && !strings.Contains(why, "leave out qos") {
			t.Errorf("%q: %+v", name, planned.Across)
		}
	}
}

func TestNoNode(t *testing.T) {
	if got := fleet.Choose(nil).String(); got != fleet.NoNode {
		t.Error(got)
	}
}

func TestReasonsDoNotCount(t *testing.T) {
	a := plan.Link{Name: "l", Transport: "shm", Reason: "fast", Evidence: []plan.Evidence{{Requirement: "latency", Required: "≤ 1ms", Expected: "1us"}}}
	b := a
	b.Reason, b.Evidence = "faster", []plan.Evidence{{Requirement: "latency", Required: "≤ 1ms", Expected: "2us"}}
	if !fleet.Same(a, b) || !fleet.SameLimits(a, b) {
		t.Error("links differ by their reasons")
	}
	b.Evidence = []plan.Evidence{{Requirement: "latency", Required: "≤ 2ms"}}
	if !fleet.Same(a, b) || fleet.SameLimits(a, b) {
		t.Error("what is required of a link decides how it is made, or nothing")
	}
	b.Transport = "memif"
	if fleet.Same(a, b) {
		t.Error("links of two transports are the same")
	}
}

func TestNames(t *testing.T) {
	if got := fleet.Names([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

// gtpuPath is a path from a gNB through a UPF and a router; the links' MTUs are given.
func gtpuPath(at chain.Side, to string, mtus ...int) (*Plan, Path) {
	functions := []string{"gnb", "upf", "router", "dn"}
	p := &Plan{}
	path := Path{Name: "pdu", GTPU: &chain.GTPU{At: at, To: netip.MustParseAddr(to), PDU: chain.PDUUp}}
	for i, mtu := range mtus {
		a, b := functions[i], functions[i+1]
		name := a + "-" + b
		p.Links = append(p.Links, Link{Name: name, MTU: mtu, Ends: []End{
			{Function: a, Port: "out", IP: netip.MustParsePrefix("10.0." + string(rune('0'+i)) + ".1/24")},
			{Function: b, Port: "in", IP: netip.MustParsePrefix("10.0." + string(rune('0'+i)) + ".2/24")},
		}})
		path.Steps = append(path.Steps, chain.Step{Link: name, Out: chain.End{Function: a, Port: "out"}, In: chain.End{Function: b, Port: "in"}})
	}
	return p, path
}

// TestAUsersPacketIsWhatCounts: the links inside the tunnel lose its headers, the others not.
func TestAUsersPacketIsWhatCounts(t *testing.T) {
	for name, c := range map[string]struct {
		at   chain.Side
		to   string
		want []int
	}{
		"ended by the first function":  {chain.SideFrom, "10.0.0.2", []int{1456, 1500, 1500}},
		"ended by the second function": {chain.SideFrom, "10.0.1.2", []int{1456, 1456, 1500}},
		"begun at the other end":       {chain.SideTo, "10.0.2.1", []int{1500, 1500, 1456}},
		"ended by a program's address": {chain.SideFrom, "192.0.2.1", []int{1456, 1500, 1500}},
		"begun there, and ended so":    {chain.SideTo, "192.0.2.1", []int{1500, 1500, 1456}},
	} {
		p, path := gtpuPath(c.at, c.to, 1500, 1500, 1500)
		if got := p.room(path); !slices.Equal(got, c.want) {
			t.Errorf("a tunnel %s: %v, want %v", name, got, c.want)
		}
	}
}

// TestATunnelBetweenHostsTakesItsShare of a user's packet, as well as GTP-U.
func TestATunnelBetweenHostsTakesItsShare(t *testing.T) {
	p, path := gtpuPath(chain.SideFrom, "10.0.0.2", 1500, 1500, 1500)
	p.Hosts = &chain.Hosts{Underlay: chain.Underlay{MTU: 1500}}
	p.Links[0].Hosts, p.Links[1].Hosts = []string{"site", "edge"}, []string{"edge", "core"}
	path.Requires.MTU = 1450
	if got := p.room(path); !slices.Equal(got, []int{1406, 1450, 1500}) {
		t.Errorf("room: %v", got)
	}
	if ev := p.judgeMTU(path); ev.Meets || ev.Source != "link gnb-upf, of which VXLAN takes 50 B of the underlay's 1500, where GTP-U takes 44 B" {
		t.Errorf("%+v", ev)
	}
	if fix := p.widen(path); fix != "give the network between the hosts an mtu of 1550" {
		t.Errorf("fix: %s", fix)
	}
	path.Requires.MTU = 1470
	if fix := p.widen(path); fix != "give the ports of link gnb-upf an mtu of 1514, and give the network between the hosts an mtu of 1564" {
		t.Errorf("fix: %s", fix)
	}
	p.Hosts.Underlay.MTU = 1564
	if got := p.room(path); !slices.Equal(got, []int{1456, 1500, 1500}) {
		t.Errorf("room in a wider network: %v", got)
	}
}

// TestTheHopThatDoesNotFitIsNamed, and what would make it fit.
func TestTheHopThatDoesNotFitIsNamed(t *testing.T) {
	p, path := gtpuPath(chain.SideFrom, "10.0.0.2", 1500, 1490, 9000)
	path.Requires.MTU = 1500
	ev := p.judgeMTU(path)
	if ev.Meets || ev.Expected != "1456 B" || ev.Source != "link gnb-upf, where GTP-U takes 44 B" {
		t.Errorf("%+v", ev)
	}
	if fix := p.widen(path); fix != "give the ports of link gnb-upf an mtu of 1544, and those of link upf-router an mtu of 1500" {
		t.Errorf("fix: %s", fix)
	}
	path.Requires.MTU = 1456
	if ev := p.judgeMTU(path); !ev.Meets {
		t.Errorf("%+v", ev)
	}
	path.GTPU, path.Requires.MTU = nil, 1500
	if ev := p.judgeMTU(path); ev.Meets || ev.Source != "link upf-router" || strings.Contains(ev.Source, "GTP-U") {
		t.Errorf("without a tunnel: %+v", ev)
	}
}

// tunnelChain is [ gnb ]──n3──[ upf ]──n6──[ dn ], with GTP-U on n3.
const tunnelChain = `
apiVersion: drayage/v1
kind: Chain
name: n3
functions:
  - {name: gnb, runtime: process, ports: [{name: n3, face: native, mtu: 1544, N3 mac: "02:00:00:00:00:01"}]}
  - {name: upf, runtime: process, command: [vnf, $(DRAY_EAL)], ports: [{name: n3, face: dpdk, mtu: 1544}, {name: n6, face: dpdk}]}
  - {name: dn, runtime: process, ports: [{name: n6, face: native, mac: "02:00:00:00:00:02"}]}
links:
  - {name: n3, ends: [gnb.n3, upf.n3], transport: shm}
  - {name: n6, ends: [upf.n6, dn.n6], transport: shm}
paths:
  - {name: pdu, from: gnb.n3, through: [upf], to: dn.n6, gtpu: {at: from, from: 192.0.2.1, to: TO, pdu: up}, requires: {mtu: 1500}}
`

// TestTheTunnelsEndIsPlanned: the plan of a chain counts GTP-U as the plan that a run measures
// by does, whether a program has the tunnels' address, or a port that the chain or the planner
// gave it.
func TestTheTunnelsEndIsPlanned(t *testing.T) {
	for name, test := range map[string]struct {
		n3, to string
		room   int
	}{
		"the program's own":    {"ip: 10.60.0.1/16,", "203.0.113.1", 1500},
		"of the port":          {"ip: 10.60.0.1/16,", "10.60.0.2", 1500},
		"assigned to the UPF":  {"", "198.18.0.2", 1500},
		"assigned to the next": {"", "198.18.1.2", 1456},
	} {
		inv := loadInventory(t, "vm2")
		devices(inv)
		c, err := chain.Parse("n3.yaml", []byte(strings.NewReplacer("N3", test.n3, "TO", test.to).Replace(tunnelChain)))
		if err != nil {
			t.Fatal(err)
		}
		c.Policy.OnInfeasible = chain.Warn
		p := mustPlan(t, c, inv)
		if ev := p.Paths[0].Evidence[0]; ev.Expected != fmt.Sprintf("%d B", test.room) || ev.Meets != (test.room == 1500) {
			t.Errorf("%s: %+v", name, ev)
		}
		if l := p.OfPaths().Links[0]; l.MTU != test.room {
			t.Errorf("%s: a run measures with %d B", name, l.MTU)
		}
	}
}

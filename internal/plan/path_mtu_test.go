// SPDX-License-Identifier: Apache-2.0

package plan

import (
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
		"ended by nobody known":        {chain.SideFrom, "192.0.2.1", []int{1456, 1456, 1456}},
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

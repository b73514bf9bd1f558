// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

func TestPathsAsLinks(t *testing.T) {
	port := func(function, name string) chain.End { return chain.End{Function: function, Port: name} }
	end := func(function, name string, mac chain.MAC) End { return End{Function: function, Port: name, MAC: mac} }
	p := &Plan{
		Links: []Link{
			{Name: "n3", Transport: "vxlan", MTU: 1500, Hosts: []string{"edge", "core"}, Ends: []End{end("upf", "n3", "u"), end("cu", "n3", "c3")}},
			{Name: "f1", Transport: "shm", MTU: 9000, Ends: []End{end("cu", "f1", "c1"), end("du", "f1", "d")}},
		},
		Paths: []Path{{
			Name: "dl", From: port("upf", "n3"), To: port("du", "f1"), Directions: chain.DirectionsForward, Load: 7, Requires: chain.Requires{MinBitrate: 70},
			Steps: []chain.Step{{Link: "n3", Out: port("upf", "n3"), In: port("cu", "n3")}, {Link: "f1", Out: port("cu", "f1"), In: port("du", "f1")}},
		}},
	}
	l := p.OfPaths().Link("dl")
	if l == nil || len(p.Links) != 2 || len(p.OfPaths().Links) != 1 {
		t.Fatalf("the paths are %+v", p.OfPaths().Links)
	}
	if l.MTU != 1500 || l.Transport != "vxlan + shm" || !slices.Equal(l.Hosts, []string{"core", "edge"}) || l.Load != 7 || l.Requires.MinBitrate != units.Bitrate(70) {
		t.Errorf("%+v", l)
	}
	if l.Ends[0].MAC != "u" || l.Ends[1].MAC != "d" || !l.Course.Forward || l.Course.Next[0].MAC != "c3" || l.Course.Next[1].MAC != "c1" || !slices.Equal(l.Course.Through, []string{"cu"}) {
		t.Errorf("%+v", l.Course)
	}
}

// With tunnels at an end, packets leave room for their headers.
func TestAPathWithTunnelsIsShorter(t *testing.T) {
	port := func(function, name string) chain.End { return chain.End{Function: function, Port: name} }
	p := &Plan{
		Links: []Link{
			{Name: "n3", MTU: 1500, Ends: []End{{Function: "gnb", Port: "n3"}, {Function: "upf", Port: "n3"}}},
			{Name: "n6", MTU: 1500, Ends: []End{{Function: "upf", Port: "n6"}, {Function: "dn", Port: "n6"}}},
		},
		Paths: []Path{{
			Name: "pdu", GTPU: &chain.GTPU{At: chain.SideFrom, PDU: chain.PDUUp},
			Steps: []chain.Step{{Link: "n3", Out: port("gnb", "n3"), In: port("upf", "n3")}, {Link: "n6", Out: port("upf", "n6"), In: port("dn", "n6")}},
		}},
	}
	l := p.OfPaths().Link("pdu")
	if l.MTU != 1456 || l.Frame != 1474 || l.Course.GTPU == nil || p.Links[0].MTU != 1500 {
		t.Errorf("an MTU of %d, frames of %d, %+v", l.MTU, l.Frame, l.Course)
	}
}

// The terms add up as docs/paths.md says: 100 − (100 − P)/n for n links and functions.
func TestComposition(t *testing.T) {
	c := &chain.Path{Requires: chain.Requires{Percentile: 99}, Steps: make([]chain.Step, 3)}
	if got := share(c); got != 99.8 {
		t.Errorf("three links and two functions share p99 as p%v", got)
	}
	limit := units.Ratio(0.02)
	p := Path{Requires: chain.Requires{Latency: 100, Percentile: 99, LossRatio: &limit, MinBitrate: 10}, Terms: []Term{
		{Link: "a", Latency: 40, LossRatio: 0.01, Bitrate: 30}, {Link: "b", Latency: 50, LossRatio: 0.01, Bitrate: 20},
	}}
	for want, ev := range map[string]Evidence{"90ns": p.judgeLatency(), "0.0199": p.judgeLoss(), "20bps": p.judgeBitrate()} {
		if ev.Expected != want || !ev.Meets {
			t.Errorf("%s: %+v", want, ev)
		}
	}
	p.Terms[1].Latency, p.Terms[1].LossRatio, p.Terms[1].Bitrate = 0, 0, 0
	for _, ev := range []Evidence{p.judgeLatency(), p.judgeLoss(), p.judgeBitrate()} {
		if ev.Meets || ev.Expected != unknown {
			t.Errorf("a link without evidence: %+v", ev)
		}
	}
}

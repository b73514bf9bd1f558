// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"net/netip"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// dl is the plan of a path from the CU-UP through a router to the DU, in place of its links.
func dl() *plan.Plan {
	p := f1()
	l := &p.Links[0]
	l.Course = &plan.Course{Through: []string{"router"}, Next: [2]plan.End{{MAC: "near-cu"}, {MAC: "near-du"}}}
	l.Ends[0].MAC, l.Ends[1].MAC = "cu", "du"
	return p
}

func TestWhatAPathIsMeasuredBy(t *testing.T) {
	var got []record.Quantity
	for _, m := range matrix(dl(), Options{}) {
		if m.tool.Name() != (instrument.Draygen{}).Name() || m.crossCheck {
			t.Errorf("%s by %s", m.quantity, m.tool.Name())
		}
		if m.quantity == record.QThroughput && m.params.Bitrate != 4_417_600_000 {
			t.Errorf("offered at %d bit/s, want a tenth more than is required", m.params.Bitrate)
		}
		got = append(got, m.quantity)
	}
	if want := []record.Quantity{record.QStream, record.QThroughput, record.QPathMTU, record.QStream, record.QThroughput, record.QPathMTU}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p := dl()
	p.Links[0].Course.Forward, p.Links[0].Requires.MinBitrate = true, 0
	if ms := matrix(p, Options{}); len(ms) != 2 || ms[0].from.Function != "cu-up" {
		t.Errorf("forward only, without a bitrate: %d measurements", len(ms))
	}
}

// Packets are in tunnels from the end that has them, and go to the tunnels' users from the
// other. Both have the same payload.
func TestTunnelsAtAnEnd(t *testing.T) {
	for _, at := range []chain.Side{chain.SideFrom, chain.SideTo} {
		p := dl()
		l := &p.Links[0]
		l.Course.GTPU = &chain.GTPU{At: at, TEID: 5, Tunnels: 1000, From: netip.MustParseAddr("10.9.9.1"), To: netip.MustParseAddr("10.9.9.2")}
		for i := range 2 {
			m := measurement{link: *l, from: l.Ends[i], to: l.Ends[1-i]}
			params := instrument.Params{Frame: 1000, MTU: 900}
			tunnelled(m, &params)
			e := params.Encap
			if inside := (i == 0) == (at == chain.SideFrom); inside {
				if e.Option != l.Course.GTPU.String() || e.Spread != "from" || e.Users != 1 || params.Frame != 1036 || params.MTU != 936 {
					t.Errorf("from end %d, with tunnels at %s: %+v", i, at, params)
				}
			} else if e.Option != "" || e.Headers != 0 || e.Spread != "to" || e.Users != 256 || params.Frame != 1000 || params.MTU != 900 {
				t.Errorf("from end %d, with tunnels at %s: %+v", i, at, params)
			}
		}
	}
	var plain instrument.Params
	l := dl().Links[0]
	if tunnelled(measurement{link: l, from: l.Ends[0], to: l.Ends[1]}, &plain); plain.Encap != nil {
		t.Error("a path without tunnels has an encapsulation")
	}
}

func TestNextHops(t *testing.T) {
	hops := func(edit func(*plan.Link), from int) []string {
		p := dl()
		edit(&p.Links[0])
		l := p.Links[0]
		return nextHops(measurement{link: l, from: l.Ends[from], to: l.Ends[1-from]})
	}
	same := func(*plan.Link) {}
	other := func(l *plan.Link) { l.Ends[1].IP = netip.MustParsePrefix("10.39.0.2/24") }
	bare := func(l *plan.Link) { l.Ends[0].IP, l.Ends[1].IP = netip.Prefix{}, netip.Prefix{} }
	one := func(l *plan.Link) { l.Course.Next[0] = plan.End{MAC: chain.MAC("du")} }
	for _, c := range []struct {
		name string
		edit func(*plan.Link)
		from int
		want []string
	}{
		{"one subnet", same, 0, []string{"du", "near-cu"}},
		{"two subnets", other, 0, []string{"near-cu", "du"}},
		{"two subnets, back", other, 1, []string{"near-du", "cu"}},
		{"no addresses", bare, 0, []string{"near-cu", "du"}},
		{"no function between", one, 0, []string{"du"}},
	} {
		if got := hops(c.edit, c.from); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Receivers of a path never keep a CPU busy on another machine: its functions may need all there.
func TestReceiversOfAPathElsewhereSleep(t *testing.T) {
	p := dl()
	p.Links[0].Course.Through = nil
	for i := range p.Links[0].Ends {
		p.Links[0].Ends[i].Face = chain.FaceNative
	}
	for i := range p.Functions {
		p.Functions[i].CPUs = []int{2 * i, 2*i + 1}
	}
	for far, want := range map[bool]bool{true: false, false: goruntime.NumCPU() >= 2} {
		if got := matrix(p, Options{Far: far})[0].params.Poll; got != want {
			t.Errorf("far %v: a receiver polls: %v", far, got)
		}
	}
	p.Links[0].Course = nil
	if !matrix(p, Options{Far: true})[0].params.Poll {
		t.Error("a receiver of a link sleeps")
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestPollingLinksGetCPUs: no CPU of a pinned function, no CPU twice, and a warning if
// none is left.
func TestPollingLinksGetCPUs(t *testing.T) {
	inv := &inventory.Inventory{Transports: []inventory.Transport{
		{Item: inventory.Item{Name: "switch"}, Caps: inventory.Caps{BusyCPUs: 1}},
		{Item: inventory.Item{Name: "veth"}},
	}}
	for _, c := range []struct {
		name     string
		cpus     []int
		pinned   []int
		want     [][]int // by link
		warnings string
	}{
		{"free", []int{0, 1, 2, 3}, nil, [][]int{{1}, nil, {2}}, ""},
		{"beside a function", []int{0, 1, 2, 3}, []int{1}, [][]int{{2}, nil, {3}}, ""},
		{"too few", []int{0, 1}, []int{1}, [][]int{{0}, nil, nil}, "link c:"},
		{"none", []int{0, 1}, []int{0, 1}, [][]int{nil, nil, nil}, "link a, c:"},
	} {
		inv.Host.CPUs = c.cpus
		p := &planner{inv: inv, chain: &chain.Chain{}, plan: &Plan{
			Functions: []Function{{Name: "f", CPUs: c.pinned}},
			Links:     []Link{{Name: "a", Transport: "switch"}, {Name: "b", Transport: "veth"}, {Name: "c", Transport: "switch"}},
		}}
		p.assignLinkCPUs()
		for i, l := range p.plan.Links {
			if !slices.Equal(l.CPUs, c.want[i]) {
				t.Errorf("%s: link %s has CPUs %v, not %v", c.name, l.Name, l.CPUs, c.want[i])
			}
		}
		if got := strings.Join(p.plan.Warnings, "\n"); !strings.Contains(got, c.warnings) || (c.warnings == "") != (got == "") {
			t.Errorf("%s: warnings %q, want one with %q", c.name, got, c.warnings)
		}
	}
}

// TestTunnelsGetCPUs: the switch of each host polls, and the switches share CPUs if
// there are too few.
func TestTunnelsGetCPUs(t *testing.T) {
	inv := &inventory.Inventory{Transports: []inventory.Transport{
		{Item: inventory.Item{Name: "tunnel"}, Caps: inventory.Caps{BusyCPUs: 1, Tunnel: true}},
	}}
	for _, c := range []struct{ cpus, want []int }{{[]int{0, 1, 2, 3}, []int{1, 2}}, {[]int{0}, nil}} {
		inv.Host.CPUs = c.cpus
		p := &planner{inv: inv, chain: &chain.Chain{}, plan: &Plan{Links: []Link{{Name: "a", Transport: "tunnel", Hosts: []string{"h1", "h2"}}}}}
		p.assignLinkCPUs()
		if got := p.plan.Links[0].CPUs; !slices.Equal(got, c.want) || len(p.plan.Warnings) > 0 != (c.want == nil) {
			t.Errorf("of the CPUs %v a tunnel has %v; warnings %q", c.cpus, got, p.plan.Warnings)
		}
	}
}

// TestRemakeKeepsLinkCPUs: neither a function nor a new link gets a CPU on which a
// running link polls, and that link keeps it.
func TestRemakeKeepsLinkCPUs(t *testing.T) {
	inv := &inventory.Inventory{
		Host:       inventory.Host{CPUs: []int{0, 1, 2, 3}},
		Transports: []inventory.Transport{{Item: inventory.Item{Name: "switch"}, Caps: inventory.Caps{BusyCPUs: 1}}},
	}
	p := &planner{inv: inv, held: Held{Links: map[string][]int{"b": {1}, "c": nil}}, chain: &chain.Chain{Functions: []chain.Function{{Name: "f", CPUs: chain.CPURequest{Count: 1}}}}, plan: &Plan{
		Links: []Link{{Name: "a", Transport: "switch"}, {Name: "b", Transport: "switch"}, {Name: "c", Transport: "switch"}},
	}}
	f := p.assignCPUs()["f"]
	p.plan.Functions = []Function{{Name: "f", CPUs: f}}
	p.assignLinkCPUs()
	l := p.plan.Links
	if !slices.Equal(f, []int{2}) || !slices.Equal(l[0].CPUs, []int{3}) || !slices.Equal(l[1].CPUs, []int{1}) || l[2].CPUs != nil {
		t.Errorf("function f has %v, links have %v, %v and %v", f, l[0].CPUs, l[1].CPUs, l[2].CPUs)
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// wide is a chain of groups of eight functions, for hosts in racks of ten: each host has a
// line to the first of its rack, and these to the first of all.
func wide(functions, hosts int) *chain.Chain {
	c := pair()
	c.Functions, c.Links = nil, nil
	c.Hosts = &chain.Hosts{Underlay: chain.Underlay{MTU: 1600}}
	for h := range hosts {
		name := func(h int) string { return fmt.Sprintf("h%d", h) }
		node := chain.NUMANode{CPUs: chain.CPURequest{Count: 8}, Memory: 64 << 30}
		c.Hosts.Names = append(c.Hosts.Names, name(h))
		c.Hosts.Machines = append(c.Hosts.Machines, chain.Machine{Name: name(h), NUMA: []chain.NUMANode{node, node}})
		if to := h - h%10; to != h {
			c.Hosts.Lines = append(c.Hosts.Lines, chain.HostLine{Between: []string{name(to), name(h)}, Rate: 25e9, Delay: 2e3})
		} else if h > 0 {
			c.Hosts.Lines = append(c.Hosts.Lines, chain.HostLine{Between: []string{name(0), name(h)}, Rate: 100e9, Length: 4000})
		}
	}
	join := func(f, g int) {
		l, p, q := fmt.Sprintf("l%d-%d", f, g), port(fmt.Sprintf("p%d", g)), port(fmt.Sprintf("p%d", f))
		c.Functions[f].Ports = append(c.Functions[f].Ports, p)
		c.Functions[g].Ports = append(c.Functions[g].Ports, q)
		c.Links = append(c.Links, chain.Link{Name: l, Ends: []chain.End{end(c.Functions[f].Name, p.Name), end(c.Functions[g].Name, q.Name)},
			Transport: chain.TransportAuto, Isolation: chain.IsolationLink, Requires: chain.Requires{Latency: 1e6, Percentile: 99, MinBitrate: 50e6}})
	}
	for f := range functions {
		fn := function(fmt.Sprintf("f%d", f))
		fn.CPUs.Count, fn.Memory = 1+f*7%4, 4<<30
		c.Functions = append(c.Functions, fn)
		if f%8 > 0 {
			join(f-1, f)
		}
		if f >= 8 && f%8 < 3 {
			join(f-8, f)
		}
	}
	return c
}

// TestTwoHundredFunctionsOnFiftyHosts limits what the planner computes, generously: the
// benchmark tells the time.
func TestTwoHundredFunctionsOnFiftyHosts(t *testing.T) {
	began := testenv.ProcessorTime(t)
	p := mustPlan(t, wide(200, 50), withTunnels(t))
	took := testenv.ProcessorTime(t) - began
	t.Logf("%v: %s", took, p.Placement)
	if took > 20*time.Second || p.Placement.Cost.Unmet > 0 || p.Placement.Cost.Less(p.Placement.Bound) {
		t.Errorf("in %v: %+v", took, p.Placement)
	}
}

func BenchmarkPlan200Functions50Hosts(b *testing.B) {
	c, inv := wide(200, 50), withTunnels(b)
	for range b.N {
		mustPlan(b, c, inv)
	}
}

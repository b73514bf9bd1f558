// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// shares is a chain of functions f0, f1, …: each has a share of the CPUs of its set, or of
// one that the planner chooses.
func shares(set []int, share ...float64) *chain.Chain {
	c := &chain.Chain{Name: "shares", Policy: chain.Policy{OnInfeasible: chain.Refuse}}
	for i, s := range share {
		f := function(fmt.Sprintf("f%d", i))
		f.Compute = &chain.Compute{Share: units.Ratio(s), Deadline: 10e6}
		f.CPUs = chain.CPURequest{Set: set}
		if set == nil {
			f.CPUs.Count = 1
		}
		c.Functions = append(c.Functions, f)
	}
	return c
}

func cpusOfAll(p *Plan) (all [][]int) {
	for _, f := range p.Functions {
		all = append(all, f.CPUs)
	}
	return all
}

func TestSharesOfOneCPU(t *testing.T) {
	inv := loadInventory(t, "server8") // 0-7, 4-7 isolated
	// 70 and 30 fill a CPU, whatever binary fractions make of it; so do 60 and 40.
	p := mustPlan(t, shares(nil, 0.3, 0.6, 0.7, 0.4), inv)
	if got := cpusOfAll(p); !slices.EqualFunc(got, [][]int{{4}, {5}, {4}, {5}}, slices.Equal) {
		t.Errorf("CPUs %v", got)
	}
	if len(p.Warnings) != 2 || !strings.Contains(p.Warnings[0], "CPU 4: its functions have 100% of it together (f2 70%, f0 30%)") {
		t.Errorf("warnings %q", p.Warnings)
	}
	if f := p.Functions[1]; !strings.HasSuffix(f.Reason, "; 60% of CPU 5") || f.Compute == nil || f.Compute.Share != 0.6 {
		t.Errorf("%+v", f)
	}
	p = mustPlan(t, shares([]int{3}, 0.1, 0.2, 0.3, 0.35), inv)
	if len(p.Warnings) > 0 || len(p.Functions[3].CPUs) != 1 {
		t.Errorf("%+v", p)
	}
}

// A function without compute has its CPUs for itself, and so has one with several.
func TestSharesLeaveOthersAlone(t *testing.T) {
	inv := loadInventory(t, "server8")
	c := shares(nil, 0.1, 0.1)
	c.Functions[1].CPUs.Count = 2
	c.Functions = append(c.Functions, function("own"))
	c.Functions[2].CPUs.Count = 4
	if got := cpusOfAll(mustPlan(t, c, inv)); !slices.EqualFunc(got, [][]int{{3}, {4, 5}, {1, 2, 6, 7}}, slices.Equal) {
		t.Errorf("CPUs %v", got)
	}
	for want, edit := range map[string]func(c *chain.Chain){
		"CPU 2 has 30% left: f0 40%, f1 30%; lower a share on CPU 2 by 20%, or name another CPU; these are free: 0-1,3-7": func(c *chain.Chain) {
			c.Functions[1].Compute.Share = 0.3
		},
		"CPU 2 is already pinned to function f0; give each": func(c *chain.Chain) { c.Functions[1].Compute = nil },
		"CPU 2 is also of f0, and only functions with one CPU can share it": func(c *chain.Chain) {
			c.Functions[1].CPUs.Set = []int{2, 3}
		},
		"CPU 2 is also of f1, and only functions with one CPU can share it": func(c *chain.Chain) {
			c.Functions[0].CPUs.Set, c.Functions[1].CPUs.Set = []int{5}, []int{2, 3}
		},
	} {
		c := shares([]int{2}, 0.4, 0.4, 0.5)
		if !strings.Contains(want, "f1 30%") {
			c.Functions[2].Compute.Share = 0.1
		}
		edit(c)
		_, err := Make(c, inv)
		var infeasible *Infeasible
		if !errors.As(err, &infeasible) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// The smallest change is named, and helps.
func TestNoRoomForAShare(t *testing.T) {
	inv := loadInventory(t, "server8")
	inv.Host.CPUs, inv.Host.Isolated = []int{0, 1}, nil
	c := shares(nil, 0.7, 0.6, 0.5)
	_, err := Make(c, inv)
	if err == nil || !strings.Contains(err.Error(), "compute share 50%: CPU 0 has 40% left: f1 60%; lower a share on CPU 0 by 10%") {
		t.Fatalf("%v", err)
	}
	c.Functions[2].Compute.Share -= 0.1
	mustPlan(t, c, inv)
	c = shares(nil, 0.7)
	c.Functions = append(c.Functions, function("own"))
	c.Functions[1].CPUs.Count = 2
	const want = "every CPU is pinned to a function or link that cannot share it; ask for fewer CPUs elsewhere; functions with compute and one CPU can share it"
	if _, err := Make(c, inv); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	c.Functions[1].Compute = &chain.Compute{Share: 0.6, Deadline: 10e6} // of two CPUs, so it shares neither
	if _, err := Make(c, inv); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// Hosts with resources have whole CPUs for functions with compute.
func TestNoSharesOnHostsWithResources(t *testing.T) {
	inv := loadInventory(t, "server8")
	c := shares(nil, 0.5, 0.3)
	c.Hosts = &chain.Hosts{Names: []string{"x", "y"}, Machines: []chain.Machine{
		{Name: "x", NUMA: []chain.NUMANode{{CPUs: chain.CPURequest{Count: 1}}}}, {Name: "y", NUMA: []chain.NUMANode{{CPUs: chain.CPURequest{Count: 1}}}}}}
	p := mustPlan(t, c, inv)
	if a, b := p.Functions[0], p.Functions[1]; a.On == b.On || slices.Equal(a.CPUs, b.CPUs) {
		t.Errorf("%+v and %+v", a, b)
	}
}

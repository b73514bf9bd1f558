// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// inARow is pair() on the ends of three hosts in a row, on an inventory that can simulate
// them:
//
//	h1 ──1 Gb/s── h2 ──100 Mb/s── h3
func inARow(t *testing.T) (*chain.Chain, *inventory.Inventory) {
	t.Helper()
	c := pair()
	c.Hosts = &chain.Hosts{
		Underlay: chain.Underlay{MTU: 1600},
		Lines:    []chain.HostLine{{Between: []string{"h1", "h2"}, Rate: 1e9}, {Between: []string{"h3", "h2"}, Rate: 100e6, Length: 1000}},
	}
	for _, name := range []string{"h1", "h2", "h3"} {
		c.Hosts.Names = append(c.Hosts.Names, name)
		c.Hosts.Machines = append(c.Hosts.Machines, chain.Machine{Name: name, NUMA: []chain.NUMANode{{CPUs: chain.CPURequest{Count: 4}}}})
	}
	c.Functions[0].Host, c.Functions[1].Host = "h1", "h3"
	inv := withTunnels(t)
	inv.Host.CPUs = []int{0, 1, 2, 3}
	inv.Qdiscs = []inventory.Item{{Name: "netem", Status: inventory.OK}, {Name: "tbf", Status: inventory.OK}}
	return c, inv
}

// TestHostsOnLinesGetCPUsOfThisMachine, as many as of their hosts, or all share it.
func TestHostsOnLinesGetCPUsOfThisMachine(t *testing.T) {
	c, inv := inARow(t)
	c.Functions[0].CPUs.Count, c.Functions[1].CPUs.Set = 2, []int{3}
	p := mustPlan(t, c, inv)
	if a, b := p.Functions[0], p.Functions[1]; fmt.Sprint(a.CPUs, b.CPUs) != "[1 2] [3]" || !strings.HasSuffix(b.Reason, "; CPU 3 there") {
		t.Errorf("the functions are placed as %+v and %+v", a, b)
	}
	var text bytes.Buffer
	if err := p.Text(&text, 0, false); err != nil || !strings.Contains(text.String(), "hosts h1, h2, h3 are simulated on it; 2 lines, mtu 1600\n") {
		t.Errorf("%v in\n%s", err, &text)
	}
	if err := p.Simulable(); err != nil || len(p.Warnings) > 0 {
		t.Errorf("error %v, warnings %q", err, p.Warnings)
	}
	c.Functions[0].CPUs.Count = 4
	p = mustPlan(t, c, inv)
	if fmt.Sprint(p.Functions[0].CPUs, p.Functions[1].CPUs) != "[] []" || len(p.Warnings) != 1 ||
		!strings.HasPrefix(p.Warnings[0], "functions ask for 5 CPUs of their hosts, and 4 CPUs of this machine can be given") {
		t.Errorf("too many CPUs: %+v, warnings %q", p.Functions, p.Warnings)
	}
	if err := p.Simulable(); err != nil {
		t.Error(err)
	}
	// What runs keeps its CPUs, or stays without.
	p, err := Remake(c, inv, Held{Functions: map[string][]int{"a": nil, "b": {2}}, Links: map[string][]int{"x": {3}}})
	if err != nil || fmt.Sprint(p.Functions[0].CPUs, p.Functions[1].CPUs) != "[] [2]" {
		t.Errorf("planned again: %+v, %v", p.Functions, err)
	}
	c.Functions[0].CPUs.Count = 2
	if p, err = Remake(c, inv, Held{Functions: map[string][]int{"b": {2}}}); err != nil || !slices.Equal(p.Functions[0].CPUs, []int{1, 3}) {
		t.Errorf("a new function has %v, %v", p.Functions[0].CPUs, err)
	}
}

// TestWhatThisMachineLacksToSimulate does not keep hosts on lines from being planned.
func TestWhatThisMachineLacksToSimulate(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*chain.Chain, *inventory.Inventory)
		want string
	}{
		"delay": {func(_ *chain.Chain, inv *inventory.Inventory) { inv.Qdiscs = inv.Qdiscs[1:] },
			"the line from h3 to h2: delay 5us: unsupported: this kernel has no sch_netem; run it in a guest whose kernel has it: `dray lab --need netem -- dray …`; or leave out the lines' delay and length"},
		"rate": {func(_ *chain.Chain, inv *inventory.Inventory) { inv.Qdiscs = inv.Qdiscs[:1] },
			"the line from h1 to h2: rate 1Gbps: unsupported: this kernel has no sch_tbf"},
		"hosts": {func(c *chain.Chain, _ *inventory.Inventory) {
			for i := range chain.MaxHosts {
				c.Hosts.Names = append(c.Hosts.Names, fmt.Sprintf("more%d", i))
			}
		}, "hosts: 19 machines: one machine simulates at most 16 hosts"},
		"hugepages": {func(c *chain.Chain, _ *inventory.Inventory) {
			c.Functions[0].HugePages = []chain.HugePages{{Size: 1 << 30, Limit: 1 << 30}}
		}, "chain pair: hugepages of 1Gi"},
		"compute": {func(c *chain.Chain, _ *inventory.Inventory) {
			c.Functions[0].CPUs.Count, c.Functions[1].CPUs.Count, c.Functions[1].Compute = 4, 1, &chain.Compute{Share: 0.5, Deadline: 1e9}
		}, "function b: compute 50%: a share of a CPU needs CPUs of this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			c, inv := inARow(t)
			test.edit(c, inv)
			p := mustPlan(t, c, inv)
			err := p.Simulable()
			var infeasible *Infeasible
			if len(p.Unsimulated) != 1 || !errors.As(err, &infeasible) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("lacks %+v, error %v; want %q", p.Unsimulated, err, test.want)
			}
			var text bytes.Buffer
			if err := p.Text(&text, 0, false); err != nil || !strings.Contains(text.String(), "are planned, and cannot be simulated on it") || !strings.Contains(text.String(), "Cannot be simulated on this machine:\n") {
				t.Errorf("%v in\n%s", err, &text)
			}
		})
	}
}

func TestMemoryOfHostsOnLines(t *testing.T) {
	c, inv := inARow(t)
	c.Functions[0].Memory = 1 << 50
	p := mustPlan(t, c, inv)
	if len(p.Unsimulated) > 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "functions may use 1024Ti of memory on their hosts") {
		t.Errorf("lacks %+v, warnings %q", p.Unsimulated, p.Warnings)
	}
}

// TestFirstLines: together they are the routes with the least delay.
func TestFirstLines(t *testing.T) {
	c, _ := inARow(t)
	c.Hosts.Names = append(c.Hosts.Names, "apart")
	if got, want := fmt.Sprint(FirstLines(c.Hosts)), "[[-1 0 0 -1] [0 -1 1 -1] [1 1 -1 -1] [-1 -1 -1 -1]]"; got != want {
		t.Errorf("first lines %s, want %s", got, want)
	}
	// A direct line that takes longer carries nothing.
	c.Hosts.Lines = append(c.Hosts.Lines, chain.HostLine{Between: []string{"h1", "h3"}, Delay: 10e3})
	if got := FirstLines(c.Hosts)[0][2]; got != 0 {
		t.Errorf("from h1 to h3 first over line %d", got)
	}
	c.Hosts.Lines[2].Delay = 4e3
	if got := FirstLines(c.Hosts)[0][2]; got != 2 {
		t.Errorf("from h1 to h3 first over line %d", got)
	}
}

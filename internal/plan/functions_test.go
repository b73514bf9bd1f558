// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/inventory"
)

func TestCPUs(t *testing.T) {
	inv := loadInventory(t, "server8") // 0-7, 4-7 isolated
	c := pair()
	c.Functions = append(c.Functions, function("c"), function("d"))
	c.Functions[0].CPUs.Count = 2
	c.Functions[1].CPUs.Set = []int{1, 5}
	c.Functions[2].CPUs.Count = 3
	p := mustPlan(t, c, inv)
	want := map[string][]int{"a": {4, 6}, "b": {1, 5}, "c": {2, 3, 7}, "d": nil}
	for name, cpus := range want {
		if got := p.Function(name).CPUs; !slices.Equal(got, cpus) || (got == nil) != (cpus == nil) {
			t.Errorf("%s: CPUs %v, want %v", name, got, cpus)
		}
	}
	c.Functions[3].CPUs.Count = 1
	p = mustPlan(t, c, inv)
	if got := p.Function("d").CPUs; !slices.Equal(got, []int{0}) {
		t.Errorf("the first CPU is given last: d has %v", got)
	}
	if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "every CPU is pinned") {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestViolationsOfFunctions(t *testing.T) {
	for _, test := range []struct {
		name                        string
		edit                        func(a, b *chain.Function, inv *inventory.Inventory)
		subject, constraint, reason string
		hard                        bool
	}{
		{"too few CPUs", func(a, b *chain.Function, _ *inventory.Inventory) {
			a.CPUs.Count, b.CPUs.Count = 1, 2
		}, "function b", "cpus 2", "needs 2, but only 1 of the host's 2 CPUs", true},
		{"CPU not online", func(a, _ *chain.Function, _ *inventory.Inventory) {
			a.CPUs.Set = []int{1, 2, 3}
		}, "function a", "cpus 1-3", "CPU 2-3 is not available", true},
		{"CPU twice", func(a, b *chain.Function, _ *inventory.Inventory) {
			a.CPUs.Set, b.CPUs.Set = []int{1}, []int{0, 1}
		}, "function b", "cpus 0-1", "CPU 1 is already pinned to function a", false},
		{"runtime missing", func(a, _ *chain.Function, _ *inventory.Inventory) {
			a.Runtime = chain.RuntimeDocker
		}, "function a", "runtime docker", "missing on this host: dockerd is not installed", true},
		{"SCTP packets from a container", func(a, _ *chain.Function, _ *inventory.Inventory) {
			a.Runtime, a.SCTP = chain.RuntimeRunc, chain.SCTPIP
		}, "function a", "sctp ip", "this host's kernel has no SCTP", true},
		{"runtime unknown", func(a, _ *chain.Function, _ *inventory.Inventory) {
			a.Runtime = "vm"
		}, "function a", "runtime vm", "there is no such runtime", true},
		{"memory", func(a, b *chain.Function, _ *inventory.Inventory) {
			a.Memory, b.Memory = 4<<30, 5<<30
		}, "chain pair", "memory 9Gi", "exceed the host's 8Gi", true},
		{"hugepages of a size the host has too few of", func(a, b *chain.Function, inv *inventory.Inventory) {
			inv.Host.HugePages[0].Free = 3
			a.HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 4 << 20}}
			b.HugePages = a.HugePages
		}, "chain pair", "hugepages of 2Mi", "ask for 4 pages together, and 3 are free", true},
		{"hugepages of a size the host has none of", func(a, _ *chain.Function, _ *inventory.Inventory) {
			a.HugePages = []chain.HugePages{{Size: 1 << 30, Limit: 1 << 30}}
		}, "chain pair", "hugepages of 1Gi", "ask for 1 pages together, and 0 are free", true},
		{"a machine of huge pages", func(a, _ *chain.Function, inv *inventory.Inventory) {
			inv.Runtimes = append(inv.Runtimes, inventory.Item{Name: "vm", Status: inventory.OK})
			inv.Host.HugePages[0].Free = 255
			a.Runtime, a.VM = chain.RuntimeVM, &chain.VM{HugePages: true}
		}, "chain pair", "hugepages of 2Mi", "ask for 256 pages together, and 255 are free", true},
		{"memory of machines", func(a, b *chain.Function, inv *inventory.Inventory) {
			inv.Runtimes = append(inv.Runtimes, inventory.Item{Name: "vm", Status: inventory.OK})
			a.Runtime, b.Runtime = chain.RuntimeVM, chain.RuntimeVM
			a.Memory, b.Memory = 4<<30, 15<<28
		}, "chain pair", "memory 8448Mi", "exceed the host's 8Gi", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			inv, c := loadInventory(t, "vm2"), pair()
			test.edit(&c.Functions[0], &c.Functions[1], inv)
			v := mustViolate(t, c, inv)
			if v.Subject != test.subject || v.Constraint != test.constraint || !strings.Contains(v.Reason, test.reason) || v.Hard != test.hard || v.Fix == "" {
				t.Errorf("%+v", v)
			}
			c.Policy.OnInfeasible = chain.Warn
			if _, err := Make(c, inv); (err != nil) != test.hard {
				t.Errorf("under warn: %v", err)
			}
		})
	}
}

func TestAllFreeHugePagesMayBeAskedFor(t *testing.T) {
	inv, c := loadInventory(t, "vm2"), pair()
	inv.Host.HugePages[0].Free = 2
	c.Functions[0].HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 4 << 20}}
	mustPlan(t, c, inv)
}

func TestScarceMemoryWarns(t *testing.T) {
	c := pair()
	c.Functions[0].Memory = 7 << 30
	p := mustPlan(t, c, loadInventory(t, "vm2"))
	if len(p.Warnings) != 1 || p.Warnings[0] != "functions may use 7Gi of memory; 6Gi is available now" {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestFormatCPUs(t *testing.T) {
	for want, cpus := range map[string][]int{"": nil, "3": {3}, "0-2,5,7-8": {8, 0, 1, 2, 5, 7}} {
		if got := cpulist.Format(cpus); got != want {
			t.Errorf("cpulist.Format(%v) = %q, want %q", cpus, got, want)
		}
	}
}

// TestDPDKCommandsAreToldOfTheirPorts: without $(DRAY_EAL), or with a misspelling, a
// DPDK application starts and finds no ports.
func TestDPDKCommandsAreToldOfTheirPorts(t *testing.T) {
	for _, c := range []struct {
		face    chain.Face
		command []string
		want    string // the expected warning; empty: none
	}{
		{chain.FaceDPDK, []string{"app", "$(DRAY_EAL)", "--"}, ""},
		{chain.FaceDPDK, []string{"sh", "-c", "exec app $DRAY_EAL --"}, ""},
		{chain.FaceDPDK, nil, ""},
		{chain.FaceNetdev, []string{"app"}, ""},
		{chain.FaceDPDK, []string{"app", "--"}, "lacks the argument $(DRAY_EAL)"},
		{chain.FaceDPDK, []string{"app", "$(DRAYEAL)", "--"}, `gets "$(DRAYEAL)" unchanged; did you mean $(DRAY_EAL)?`},
		{chain.FaceDPDK, []string{"app", "${DRAY_EAL}", "--"}, "did you mean"},
		{chain.FaceDPDK, []string{"app", "$DRAY_EAL", "--"}, "did you mean"},
		{chain.FaceDPDK, []string{"app", "$(dray_eal)", "--"}, "did you mean"},
	} {
		p := &planner{plan: &Plan{}}
		p.warnOfEAL(&chain.Function{Name: "f", Command: c.command, Ports: []chain.Port{{Face: c.face}}})
		got := strings.Join(p.plan.Warnings, "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: warnings %q, want one with %q", c.command, got, c.want)
		}
	}
}

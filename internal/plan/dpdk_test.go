// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// devices adds transports with their own DPDK devices to an inventory whose shm and
// kernel transports also take dpdk ports.
func devices(inv *inventory.Inventory) {
	for i := range inv.Transports {
		t := &inv.Transports[i]
		if t.Name == "shm" || t.Name == "veth" {
			t.Caps.Faces = append(t.Caps.Faces, string(chain.FaceDPDK))
		}
	}
	direct := inventory.Caps{Faces: []string{string(chain.FaceDPDK)}, Isolation: string(chain.IsolationLink), MinEnds: 2, MaxEnds: 2, MaxMTU: 1500, Rank: 6}
	own := direct
	own.Rank, own.Privileged, own.Privileges = 3, true, "all of the host"
	for name, caps := range map[string]inventory.Caps{"direct": direct, "own": own} {
		inv.Transports = append(inv.Transports, inventory.Transport{Item: inventory.Item{Name: name, Status: inventory.OK}, Caps: caps})
	}
}

// TestBackendsOfDpdkPorts checks the backend of a dpdk port: one kind of native port or
// the other, or none if the transport has its own devices.
func TestBackendsOfDpdkPorts(t *testing.T) {
	for transport, want := range map[string]Backend{"shm": BackendShm, "veth": BackendNetdev, "direct": "", chain.TransportAuto: BackendShm} {
		inv, c := loadInventory(t, "vm2"), pair()
		devices(inv)
		c.Functions[0].Ports[0].Face, c.Functions[1].Ports[0].Face = chain.FaceDPDK, chain.FaceDPDK
		c.Links[0].Transport = transport
		e := mustPlan(t, c, inv).Links[0].Ends[0]
		if e.Backend != want || e.Brokered() != (want != "") {
			t.Errorf("%s: %q, brokered %v; want %q", transport, e.Backend, e.Brokered(), want)
		}
	}
}

// TestTheDriverMustExist: without net_dray, a dpdk port is none of libdray's.
func TestTheDriverMustExist(t *testing.T) {
	inv, c := loadInventory(t, "vm2"), pair()
	devices(inv)
	inv.DPDK = []inventory.Item{{Name: "net_dray", Status: inventory.Missing, Reason: "it was not built", Fix: "make pmd"}}
	c.Functions[0].Ports[0].Face, c.Functions[1].Ports[0].Face = chain.FaceNative, chain.FaceNative
	c.Links[0].Transport = "shm"
	mustPlan(t, c, inv)
	c.Functions[1].Ports[0].Face = chain.FaceDPDK
	if v := mustViolate(t, c, inv); v.Constraint != "face dpdk of b.p0" || !strings.HasSuffix(v.Reason, "missing on this host: it was not built") || v.Fix != "make pmd" {
		t.Errorf("%+v", v)
	}
	c.Functions[0].Ports[0].Face, c.Links[0].Transport = chain.FaceDPDK, chain.TransportAuto
	if p := mustPlan(t, c, inv); p.Links[0].Transport != "direct" {
		t.Errorf("auto took %s", p.Links[0].Transport)
	}
}

// TestPrivilegesMustBePermitted: a transport that needs privileges is taken only if the
// chain permits it.
func TestPrivilegesMustBePermitted(t *testing.T) {
	inv, c := loadInventory(t, "vm2"), pair()
	devices(inv)
	c.Functions[0].Ports[0].Face, c.Functions[1].Ports[0].Face = chain.FaceDPDK, chain.FaceDPDK
	if p := mustPlan(t, c, inv); p.Links[0].Transport != "shm" {
		t.Errorf("auto took %s", p.Links[0].Transport)
	}
	c.Links[0].Transport = "own"
	if v := mustViolate(t, c, inv); v.Constraint != "policy privileged: false" || v.Reason != "own needs all of the host" || !v.Hard {
		t.Errorf("%+v", v)
	}
	c.Policy.Privileged = true
	if p := mustPlan(t, c, inv); !warned(p, "own gives the functions of its ports all of the host") {
		t.Errorf("the plan does not show the privileges: %q", p.Warnings)
	}
	c.Links[0].Transport = chain.TransportAuto
	if p := mustPlan(t, c, inv); p.Links[0].Transport != "own" {
		t.Errorf("where it may, auto took %s", p.Links[0].Transport)
	}
}

// TestOnlyTrustingEnds: auto takes a transport over which the ends can harm each other
// only if the chain says that they trust each other, even if there is no other; if the
// chain names it, the plan warns.
func TestOnlyTrustingEnds(t *testing.T) {
	inv, c := loadInventory(t, "vm2"), pair()
	devices(inv)
	inv.Transport("direct").Caps.Trust = true
	for _, other := range []string{"shm", "veth"} {
		inv.Transport(other).Status = inventory.Missing
	}
	for i := range c.Functions {
		c.Functions[i].Ports[0].Face = chain.FaceDPDK
	}
	if v := mustViolate(t, c, inv); !v.Hard || strings.Contains(v.Reason, "direct") {
		t.Errorf("%+v", v)
	}
	const warning = "over direct, each end can crash the other"
	c.Links[0].Transport = "direct"
	if p := mustPlan(t, c, inv); !warned(p, warning) {
		t.Errorf("the plan does not warn: %q", p.Warnings)
	}
	c.Links[0].Transport, c.Links[0].Isolation = chain.TransportAuto, chain.IsolationSlice
	if p := mustPlan(t, c, inv); p.Links[0].Transport != "direct" || warned(p, warning) {
		t.Errorf("auto took %s, and warned: %q", p.Links[0].Transport, p.Warnings)
	}
}

// TestOneUser: a transport limited to processes of one user is refused to others.
func TestOneUser(t *testing.T) {
	inv, c := loadInventory(t, "vm2"), pair()
	devices(inv)
	inv.Transport("direct").Caps.OneUser = true
	for i := range c.Functions {
		c.Functions[i].Ports[0].Face = chain.FaceDPDK
	}
	c.Links[0].Transport = "direct"
	mustPlan(t, c, inv)
	for _, r := range []chain.RuntimeName{chain.RuntimeRunc, chain.RuntimeExternal} {
		c.Functions[1].Runtime = r
		if v := mustViolate(t, c, inv); v.Constraint != "runtime "+string(r)+" of function b" || !v.Hard || v.Fix == "" {
			t.Errorf("%+v", v)
		}
	}
}

// TestHugePagesMustBeThere: a transport that requires huge pages is not taken for a
// function without them.
func TestHugePagesMustBeThere(t *testing.T) {
	inv, c := loadInventory(t, "vm2"), pair()
	devices(inv)
	inv.Host.HugePages = []inventory.HugePg{{Size: 2 << 20, Total: 64, Free: 64}}
	inv.Transport("direct").Caps.HugePages = true
	for i := range c.Functions {
		c.Functions[i].Ports[0].Face = chain.FaceDPDK
	}
	c.Functions[0].HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}}
	c.Links[0].Transport = "direct"
	if v := mustViolate(t, c, inv); v.Constraint != "huge pages of function b" || !v.Hard || v.Fix == "" {
		t.Errorf("%+v", v)
	}
	c.Functions[1].HugePages = c.Functions[0].HugePages
	mustPlan(t, c, inv)
}

// TestHugePagesOfSwitchesCount: the switch adds pages of the smallest size, if all
// applications of the link have huge pages.
func TestHugePagesOfSwitchesCount(t *testing.T) {
	pages := []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}}
	for _, test := range []struct {
		name      string
		free      int
		transport string
		second    []chain.HugePages // of the second function
		machine   bool              // whether it is a VM
		asked     string            // "": enough
	}{
		{"enough", 32 + 32 + 61, "switch", pages, false, ""},
		{"a machine", 32, "switch", nil, true, ""},
		{"an application in a machine, whose huge pages are its own", 32, "switch", []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}}, true, ""},
		{"one too few", 32 + 32 + 60, "switch", pages, false, "functions and switches ask for 125 pages together, and 124 are free"},
		{"no switch", 32 + 32, "direct", pages, false, ""},
		{"plain pages in one function", 32, "switch", nil, false, ""},
	} {
		inv, c := loadInventory(t, "vm2"), pair()
		devices(inv)
		// 100 MiB, and for each port 4096 buffers of 2 KiB and 600 B: 121 MiB.
		inv.Transports = append(inv.Transports, inventory.Transport{Item: inventory.Item{Name: "switch", Status: inventory.OK}, Caps: inv.Transport("direct").Caps})
		inv.Transport("switch").Caps.PacketMemory = &inventory.PacketMemory{
			Other: 100 << 20, Buffers: 4096, PerPort: true, Extra: 150, Align: 1024, Record: 600,
		}
		inv.Host.HugePages = []inventory.HugePg{{Size: 1 << 30, Total: 1, Free: 1}, {Size: 2 << 20, Total: 256, Free: test.free}}
		c.Functions[0].HugePages, c.Functions[1].HugePages = pages, test.second
		for i := range c.Functions {
			c.Functions[i].Ports[0].Face = chain.FaceDPDK
		}
		if test.machine {
			inv.Transport("switch").Caps.Machines = true
			inv.Runtimes = append(inv.Runtimes, inventory.Item{Name: "vm", Status: inventory.OK})
			c.Functions[1].Runtime, c.Functions[1].VM, c.Functions[1].Ports[0].Face = chain.RuntimeVM, &chain.VM{}, chain.FaceNetdev
			if len(test.second) > 0 {
				c.Functions[1].Ports[0].Face = chain.FaceDPDK
			}
		}
		c.Links[0].Transport = test.transport
		if test.asked == "" {
			mustPlan(t, c, inv)
		} else if v := mustViolate(t, c, inv); v.Reason != test.asked || !v.Hard || v.Constraint != "hugepages of 2Mi" {
			t.Errorf("%s: %+v", test.name, v)
		}
	}
}

// TestHugePagesAreShown: the plan shows what a profile allows beyond the default.
func TestHugePagesAreShown(t *testing.T) {
	for face, want := range map[chain.Face]bool{chain.FaceDPDK: true, chain.FaceNative: false} {
		inv, c := loadInventory(t, "vm2"), pair()
		devices(inv)
		inv.Host.HugePages = []inventory.HugePg{{Size: 2 << 20, Total: 64, Free: 64}}
		for i := range c.Functions {
			c.Functions[i].Runtime, c.Functions[i].Ports[0].Face = chain.RuntimeRunc, face
		}
		c.Functions[0].HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}}
		if p := mustPlan(t, c, inv); warned(p, "mbind") != want {
			t.Errorf("face %s: warnings %q", face, p.Warnings)
		}
	}
}

func warned(p *Plan, part string) bool {
	return slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, part) })
}

// TestMemoryOfDpdkApplications: a function whose DPDK application could not start is refused.
func TestMemoryOfDpdkApplications(t *testing.T) {
	const mi = 1 << 20
	huge := func(limit units.Bytes) []chain.HugePages { return []chain.HugePages{{Size: 2 * mi, Limit: limit}} }
	with := func(more ...string) []string { return append([]string{"testpmd", "$(DRAY_EAL)"}, more...) }
	for name, c := range map[string]struct {
		function chain.Function // whose limits and command the function has
		want     string         // constraint; empty: it is planned
		fix      string
	}{
		"no limit":           {chain.Function{}, "", ""},
		"enough":             {chain.Function{Memory: 64 * mi}, "", ""},
		"too little":         {chain.Function{Memory: 32 * mi}, "memory of 32Mi", "write memory: 64Mi or more"},
		"enough pages":       {chain.Function{Memory: 32 * mi, HugePages: huge(20 * mi)}, "", ""},
		"too few pages":      {chain.Function{Memory: 64 * mi, HugePages: huge(18 * mi)}, "hugepages of 18Mi", "write hugepages: {2Mi: 20Mi} or more"},
		"-m fits":            {chain.Function{Memory: 64 * mi, Command: with("-m", "64", "--", "-m", "999")}, "", ""},
		"-m does not fit":    {chain.Function{Memory: 64 * mi, Command: with("-m", "65", "--")}, "memory of 64Mi", "write memory: 65Mi or more"},
		"-m of pages":        {chain.Function{HugePages: huge(20 * mi), Command: with("-m21")}, "hugepages of 20Mi", "write hugepages: {2Mi: 22Mi} or more"},
		"-m of nothing":      {chain.Function{Memory: 64 * mi, Command: with("-m")}, "", ""},
		"of two nodes fits":  {chain.Function{Memory: 64 * mi, Command: with("--socket-mem", "32,32")}, "", ""},
		"of two nodes":       {chain.Function{Memory: 64 * mi, Command: with("--socket-mem=32,33")}, "memory of 64Mi", "write memory: 65Mi or more"},
		"-m without a limit": {chain.Function{Command: with("-m", "4096")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inv, pair := loadInventory(t, "vm2"), pair()
			devices(inv)
			inv.Host.HugePages = []inventory.HugePg{{Size: 2 * mi, Total: 64, Free: 64}}
			f := &pair.Functions[0]
			f.Ports[0].Face, f.Memory, f.HugePages, f.Command = chain.FaceDPDK, c.function.Memory, c.function.HugePages, c.function.Command
			if c.want == "" {
				mustPlan(t, pair, inv)
				return
			}
			if v := mustViolate(t, pair, inv); v.Subject != "function a" || v.Constraint != c.want || v.Fix != c.fix || !v.Hard {
				t.Errorf("%+v", v)
			}
		})
	}
	// A port that is no device of DPDK takes none of its memory.
	inv, pair := loadInventory(t, "vm2"), pair()
	pair.Functions[0].Memory = 32 * mi
	mustPlan(t, pair, inv)
}

// TestMemoryThatTwoApplicationsShare: the first end of a ring begins with half of its pages,
// unless its command says with how many.
func TestMemoryThatTwoApplicationsShare(t *testing.T) {
	const mi = 1 << 20
	for name, test := range map[string]struct {
		first, second units.Bytes
		command       []string
		want          string // the violation's fix; empty: it is planned
	}{
		"enough":       {40 * mi, 20 * mi, nil, ""},
		"too few":      {38 * mi, 20 * mi, nil, "write hugepages: {2Mi: 40Mi} or more"},
		"named":        {38 * mi, 20 * mi, []string{"vnf", "$(DRAY_EAL)", "-m", "30"}, ""},
		"more than is": {38 * mi, 20 * mi, []string{"vnf", "$(DRAY_EAL)", "-m", "39"}, "write hugepages: {2Mi: 40Mi} or more"},
	} {
		inv, c := loadInventory(t, "vm2"), pair()
		devices(inv)
		inv.Host.HugePages = []inventory.HugePg{{Size: 2 * mi, Total: 64, Free: 64}}
		caps := &inv.Transport("direct").Caps
		caps.HugePages, caps.OneUser = true, true
		for i, limit := range []units.Bytes{test.first, test.second} {
			c.Functions[i].Ports[0].Face, c.Functions[i].HugePages = chain.FaceDPDK, []chain.HugePages{{Size: 2 * mi, Limit: limit}}
		}
		c.Links[0].Transport, c.Functions[0].Command = "direct", test.command
		if test.want == "" {
			mustPlan(t, c, inv)
		} else if v := mustViolate(t, c, inv); v.Subject != "function a" || v.Fix != test.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

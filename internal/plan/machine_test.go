// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestDpdkPortsOfMachines: only a transport whose switch reaches a VM gives it a
// device, even if the chain leaves the choice.
func TestDpdkPortsOfMachines(t *testing.T) {
	for transport, reaches := range map[string]bool{"direct": false, "direct ": true, chain.TransportAuto: false, chain.TransportAuto + " ": true} {
		inv, c := loadInventory(t, "vm2"), pair()
		devices(inv)
		inv.Runtimes = append(inv.Runtimes, inventory.Item{Name: "vm", Status: inventory.OK})
		inv.Transport("direct").Caps.Machines = reaches
		for i := range c.Functions {
			c.Functions[i].Ports[0].Face = chain.FaceDPDK
		}
		c.Functions[1].Runtime, c.Functions[1].VM = chain.RuntimeVM, &chain.VM{}
		c.Links[0].Transport = strings.TrimSpace(transport)
		if reaches {
			if p := mustPlan(t, c, inv); p.Links[0].Transport != "direct" {
				t.Errorf("%s: %+v", transport, p.Links[0])
			}
			continue
		}
		if v := mustViolate(t, c, inv); !v.Hard || !strings.Contains(v.Constraint+v.Reason+v.Fix, "machine") {
			t.Errorf("%s: %+v", transport, v)
		}
	}
}

// TestNativePortsOfMachines: only a transport whose memory can be a device of a VM has native
// ports there, and not if the ends must not share memory.
func TestNativePortsOfMachines(t *testing.T) {
	for _, tc := range []struct {
		reaches   bool
		isolation chain.Isolation
		refused   string
	}{
		{true, chain.IsolationLink, ""}, {false, chain.IsolationLink, "machine"}, {true, chain.IsolationNoPeerMemory, "isolation no-peer-memory"},
	} {
		inv, c := loadInventory(t, "vm2"), pair()
		devices(inv)
		inv.Runtimes = append(inv.Runtimes, inventory.Item{Name: "vm", Status: inventory.OK})
		direct := inv.Transport("direct")
		direct.Caps.Faces, direct.Caps.Isolation, direct.Caps.MachineMemory = []string{string(chain.FaceNative)}, string(chain.IsolationLink), tc.reaches
		for i := range c.Functions {
			c.Functions[i].Ports[0].Face = chain.FaceNative
		}
		c.Functions[1].Runtime, c.Functions[1].VM = chain.RuntimeVM, &chain.VM{}
		c.Links[0].Transport, c.Links[0].Isolation = "direct", tc.isolation
		if tc.refused == "" {
			mustPlan(t, c, inv)
			continue
		}
		if v := mustViolate(t, c, inv); !v.Hard || !strings.Contains(v.Constraint, tc.refused) {
			t.Errorf("%+v: %+v", tc, v)
		}
	}
}

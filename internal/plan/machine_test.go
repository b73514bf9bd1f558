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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/inventory"
)

// VFs that one link holds do not make the rest of the chain infeasible.
func TestRelinkKeepsVirtualFunctions(t *testing.T) {
	host := func() *inventory.Inventory {
		return &inventory.Inventory{
			Interfaces: []inventory.Interface{{Name: "eth0"}},
			Transports: []inventory.Transport{
				{Item: inventory.Item{Name: "sr-iov", Status: inventory.Missing}, Caps: inventory.Caps{VFs: true}}, {Item: inventory.Item{Name: "shm"}},
			},
		}
	}
	live := &node.Live{State: node.State{Plan: &plan.Plan{Links: []plan.Link{
		{Name: "fronthaul", Transport: "sr-iov", Ends: make([]plan.End, 2)}, {Name: "f1u", Transport: "shm", Ends: make([]plan.End, 2)},
	}}}}
	for but, want := range map[string]int{"f1u": 2, "fronthaul": 0} {
		inv := host()
		keepVFs(inv, live, but)
		if got := inv.Interfaces[0].VFs; got != want || (inv.Transport("sr-iov").Status == inventory.OK) != (want > 0) {
			t.Errorf("all but %s: %d virtual functions, sr-iov is %s", but, got, inv.Transport("sr-iov").Status)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// CountOwn counts the memory and the huge pages that the chain uses as available, for a
// plan that replaces the chain's.
func (l *Live) CountOwn(inv *inventory.Inventory) {
	group := l.node.Cgroup(l.Chain.Name)
	inv.Host.MemoryFree = min(inv.Host.MemoryTotal, inv.Host.MemoryFree+group.HeldMemory())
	asked := askedPages(l.Chain)
	for i := range inv.Host.HugePages {
		h := &inv.Host.HugePages[i]
		used := asked[units.Bytes(h.Size)]
		if bytes, known := group.HeldHugePages(h.Size); known {
			used = int(bytes / h.Size)
		}
		h.Free = min(h.Total, h.Free+used)
	}
}

// askedPages is the number of huge pages that a chain's functions may use, by size.
func askedPages(c *chain.Chain) map[units.Bytes]int {
	asked := map[units.Bytes]int{}
	for _, f := range c.Functions {
		pages := f.HostPages()
		if f.VM != nil && f.VM.HugePages {
			pages = []chain.HugePages{{Size: chain.VMPage, Limit: f.MachineMemory()}}
		}
		for _, h := range pages {
			asked[h.Size] += int((h.Limit-1)/h.Size + 1)
		}
	}
	return asked
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// checkMemory compares all functions' memory limits with the host's memory.
func (p *planner) checkMemory() {
	var sum units.Bytes
	var over parse.Position // the function at which the sum first exceeds the host
	total := units.Bytes(p.inv.Host.MemoryTotal)
	for _, f := range p.chain.Functions {
		before := sum
		sum += min(max(f.Memory, f.MachineMemory()), math.MaxUint64-sum)
		if before <= total && sum > total {
			over = at(f.FieldPos, "memory", f.Pos)
		}
	}
	switch {
	case sum > total && p.chain.Hosts.Lined():
		p.warn("functions may use %v of memory on their hosts, and the machine that simulates these has %v", sum, total)
	case sum > total:
		p.violate(Violation{
			Subject:    "chain " + p.chain.Name,
			Constraint: fmt.Sprintf("memory %v", sum),
			Reason:     fmt.Sprintf("the functions' limits together exceed the host's %s", rounded(total)),
			Fix:        "lower the functions' memory limits",
			Pos:        over,
			Hard:       true,
		})
	case sum > units.Bytes(p.inv.Host.MemoryFree):
		p.warn("functions may use %v of memory; %s is available now", sum, rounded(units.Bytes(p.inv.Host.MemoryFree)))
	}
	p.checkMessages()
}

// rounded is the host's memory in the largest unit that fits, rounded down to a tenth.
func rounded(b units.Bytes) string {
	for _, u := range []struct {
		size units.Bytes
		name string
	}{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}} {
		if b >= u.size {
			tenths := b/u.size*10 + b%u.size*10/u.size
			return fmt.Sprintf("%v%s", float64(tenths)/10, u.name)
		}
	}
	return b.String()
}

// checkMessages compares the memory of all message buffers, allocated from the first
// packet on, with the host's memory.
func (p *planner) checkMessages() {
	var sum units.Bytes
	for i := range p.chain.Links {
		n := p.needsOf(&p.chain.Links[i])
		m := n.link.Messages
		if m == nil {
			continue
		}
		queues := nativeQueues
		for _, e := range n.ports {
			queues = min(queues, e.port.Queues)
		}
		const directions = 2
		before := sum
		sum += units.Bytes(directions*queues*m.Count) * m.Size
		free := units.Bytes(p.inv.Host.MemoryFree)
		if before <= free && sum > free {
			p.violate(Violation{
				Subject:    n.subject(),
				Constraint: fmt.Sprintf("messages of %v", m.Size),
				Reason:     fmt.Sprintf("the message buffers of the links up to this one need %v, and %s of memory is available", sum, rounded(free)),
				Fix:        "lower the size, the count or the ports' queues",
				Pos:        n.field("messages"),
				Hard:       true,
			})
		}
	}
}

// checkHugePages compares the huge pages that functions and switches ask for with the
// free ones.
func (p *planner) checkHugePages() {
	asked := map[units.Bytes]int{}
	over := map[units.Bytes]parse.Position{}
	ask := func(h chain.HugePages, pos parse.Position) {
		before := asked[h.Size]
		asked[h.Size] += int((h.Limit-1)/h.Size + 1)
		if free := p.freeHugePages(h.Size); before <= free && asked[h.Size] > free {
			over[h.Size] = pos
		}
	}
	for _, f := range p.chain.Functions {
		pages, field := f.HostPages(), "hugepages"
		if f.VM != nil && f.VM.HugePages {
			field = "vm"
			pages = []chain.HugePages{{Size: chain.VMPage, Limit: f.MachineMemory()}}
		}
		for _, h := range pages {
			ask(h, at(f.FieldPos, field, f.Pos))
		}
	}
	who := "functions"
	for i := range p.chain.Links {
		n := p.needsOf(&p.chain.Links[i])
		if h := p.switchPages(n); h.Limit > 0 {
			ask(h, n.field("transport"))
			who = "functions and switches"
		}
	}
	for _, size := range slices.Sorted(maps.Keys(over)) {
		p.violate(Violation{
			Subject:    "chain " + p.chain.Name,
			Constraint: fmt.Sprintf("hugepages of %v", size),
			Reason:     fmt.Sprintf("%s ask for %d pages together, and %d are free", who, asked[size], p.freeHugePages(size)),
			Fix: fmt.Sprintf("write the number of pages to /sys/kernel/mm/hugepages/hugepages-%dkB/nr_hugepages, or ask for fewer",
				size/1024),
			Pos:  over[size],
			Hard: true,
		})
	}
}

// switchPages returns the huge pages of a planned link's switch. It takes some if all
// its DPDK applications do and no end is a VM, in the smallest size the host has.
func (p *planner) switchPages(n *needs) chain.HugePages {
	t := p.inv.Transport(p.plan.Link(n.link.Name).Transport)
	if t == nil || t.Caps.PacketMemory == nil {
		return chain.HugePages{}
	}
	devices := 0
	for _, e := range n.ports {
		if n.machine(t, e) || n.inMachine(e) && e.port.Face == chain.FaceDPDK {
			return chain.HugePages{}
		}
		if e.port.Face != chain.FaceDPDK {
			continue
		}
		devices++
		if len(n.functions[e.end.Function].HugePages) == 0 {
			return chain.HugePages{}
		}
	}
	size := units.Bytes(0)
	for _, h := range p.inv.Host.HugePages {
		if h.Total > 0 && (size == 0 || units.Bytes(h.Size) < size) {
			size = units.Bytes(h.Size)
		}
	}
	if devices == 0 || size == 0 {
		return chain.HugePages{}
	}
	return chain.HugePages{Size: size, Limit: units.Bytes(n.switchMemory(t.Caps.PacketMemory)) << 20}
}

// switchMemory is the packet memory of the link's switch, or of a tunnel's switches on
// all hosts, in MiB.
func (n *needs) switchMemory(m *inventory.PacketMemory) int {
	if !n.crosses() {
		return m.MiB(n.mtu, len(n.ports))
	}
	on := map[string]int{}
	for _, e := range n.ports {
		on[n.functions[e.end.Function].Host]++
	}
	sum := 0
	for _, ports := range on {
		sum += m.MiB(n.mtu, ports)
	}
	return sum
}

func (p *planner) freeHugePages(size units.Bytes) int {
	for _, h := range p.inv.Host.HugePages {
		if h.Size == uint64(size) {
			return h.Free
		}
	}
	return 0
}

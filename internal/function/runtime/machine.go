// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// lastSlot is the highest PCI slot of a machine for its own devices; the chipset
// uses those above. Dpdk ports go last, so that none comes between the other
// interfaces, which the kernel numbers in bus order.
const lastSlot = 0x1e

// maxMachinePorts is the most dpdk ports of a machine: the other half of the bus is
// for its disks, channels and interfaces.
const maxMachinePorts = 14

// MachineVCPUs is how many virtual CPUs the machine of a function with dpdk or native
// ports has. The first runs its kernel and agent, which a polling program would starve;
// the application has the others.
func (s Spec) MachineVCPUs() int { return max(2, len(s.CPUs)) }

// MachineSlot is the PCI slot of a dpdk port. The last port has the last slot. EAL
// numbers devices in bus order, not argument order, and a function's ports are
// numbered as in its chain file.
func (s Spec) MachineSlot(port string) (int, error) {
	var names []string
	for _, p := range s.Function.Ports {
		if p.Face == chain.FaceDPDK {
			names = append(names, p.Name)
		}
	}
	i := slices.Index(names, port)
	if i < 0 {
		return 0, fmt.Errorf("function %s has no dpdk port %s", s.Function.Name, port)
	}
	if len(names) > maxMachinePorts {
		return 0, fmt.Errorf("function %s: a machine has at most %d dpdk ports: remove some, or use another runtime", s.Function.Name, maxMachinePorts)
	}
	return lastSlot - (len(names) - 1 - i), nil
}

// MachineAddress is the PCI address of a slot on the machine's bus.
func MachineAddress(slot int) string { return fmt.Sprintf("0000:00:%02x.0", slot) }

// inMachine is the application in the function's virtual machine.
func (s Spec) inMachine() dpdk.Application {
	app := dpdk.Application{
		HugePages: []chain.HugePages{{Size: chain.VMPage, Limit: s.Function.OwnPages()}}, Pinned: true, Nodes: 1, Inside: true,
	}
	for cpu := 1; cpu < s.MachineVCPUs(); cpu++ {
		app.CPUs = append(app.CPUs, cpu)
	}
	for _, v := range s.Vdevs {
		slot, err := s.MachineSlot(v.Port)
		if err != nil {
			continue // the port is an interface
		}
		v.PCI = MachineAddress(slot)
		app.Vdevs = append(app.Vdevs, v)
	}
	return app
}

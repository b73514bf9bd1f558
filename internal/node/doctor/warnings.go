// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"github.com/drayage/dray/internal/spec/inventory"
)

// busyLoad is the load average per core from which a machine is busy.
const busyLoad = 0.5

// Warnings says what spoils measurements on this host, and how to fix it.
func Warnings(h inventory.Host) []string {
	var warnings []string
	warn := func(format string, a ...any) { warnings = append(warnings, fmt.Sprintf(format, a...)) }
	cores := len(h.CPUs)
	if cores < 2 {
		warn("%d core: the two ends of a link share it, so every figure includes scheduling", cores)
	}
	if len(h.Isolated) == 0 {
		warn("no isolated cores: other processes disturb latency; `dray doctor --fix` shows how to keep cores free")
	}
	if h.Governor != "performance" && h.Governor != "none" {
		warn("the CPU governor is %s: figures vary with the clock rate; `dray doctor --fix` can set it", h.Governor)
	}
	if cores > 0 && h.Load1 >= busyLoad*float64(cores) {
		warn("the machine is busy: load %.2f on %s", h.Load1, count(cores, "core"))
	}
	switch h.Virtual {
	case "":
	case inventory.VirtualTCG:
		warn("an emulated processor (%s): every figure is marked emulated, and cannot be compared with a real machine's; give the virtual machine KVM", h.Virtual)
	default:
		warn("a virtual machine (%s): its hypervisor controls clock and cores, and may steal CPU time", h.Virtual)
	}
	return warnings
}

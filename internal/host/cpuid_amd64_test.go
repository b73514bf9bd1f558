// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/inventory"
)

func TestCPUID(t *testing.T) {
	_, ebx, ecx, edx := cpuid(0)
	// Leaf 0 and the hypervisor leaf differ in register order.
	if got, want := registers(ebx, edx, ecx), root("/").field("proc/cpuinfo", "vendor_id", ":"); got != want {
		t.Errorf("vendor %q; /proc/cpuinfo says %q", got, want)
	}
}

// TestEmulatedCPU uses the one CPU whose name shows emulation.
func TestEmulatedCPU(t *testing.T) {
	h, err := Describe()
	must(t, err)
	if strings.Contains(h.CPUModel, "QEMU TCG") && h.Virtual != inventory.VirtualTCG {
		t.Errorf("%s: hypervisor %q", h.CPUModel, h.Virtual)
	}
	if h.Virtual == inventory.VirtualTCG && !strings.Contains(root("/").field("proc/cpuinfo", "flags", ":"), "hypervisor") {
		t.Errorf("%s: emulated, but no virtual machine", h.CPUModel)
	}
}

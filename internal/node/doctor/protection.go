// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/inventory"
)

// protections say which form of a protection this host allows. Each is in use without
// being asked for. limit says why packet sockets cannot be limited by a control group.
func protections(kernelRefuses bool, limit error) []inventory.Item {
	bells := "the library closes them on a thread of its own (kernel older than 6.16)"
	if kernelRefuses {
		bells = "the kernel refuses descriptors on bells"
	}
	rings := host.ProbeItem("packet rings", limit)
	switch rings.Status {
	case inventory.OK:
		rings.Version = "refused on the packet sockets of native ports, whoever holds them"
	case inventory.Missing:
		rings.Reason = fmt.Sprintf("refused to runc and docker functions only: external functions with native ports can take kernel memory that no limit counts (%s)", rings.Reason)
	}
	return []inventory.Item{{Name: "bells", Status: inventory.OK, Version: bells}, rings}
}

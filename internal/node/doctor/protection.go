// SPDX-License-Identifier: Apache-2.0

package doctor

import "github.com/drayage/dray/internal/spec/inventory"

// protections say which form of a protection this kernel allows. Each is in use
// without being asked for.
func protections(kernelRefuses bool) []inventory.Item {
	bells := "the library closes them on a thread of its own (kernel older than 6.16)"
	if kernelRefuses {
		bells = "the kernel refuses descriptors on bells"
	}
	return []inventory.Item{
		{Name: "bells", Status: inventory.OK, Version: bells},
		{
			Name: "packet rings", Status: inventory.OK,
			Version: "refused to runc and docker functions; process and external functions with native ports can take kernel memory that no limit counts",
		},
	}
}

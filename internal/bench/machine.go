// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/guest"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/record"
)

// inMachine reports whether the generator is a DPDK application in a virtual machine.
// Each machine has its own clock: there one thread is both ends.
func inMachine(c record.Config) bool {
	return c.Runtime == string(chain.RuntimeVM) && c.Face == string(chain.FaceDPDK)
}

// Emulated reports whether some function of a chain is a machine whose CPUs are emulated.
func Emulated(live *node.Live) bool {
	for _, s := range live.State.Sandboxes {
		if guest.Emulated(s.Guest) {
			return true
		}
	}
	return false
}

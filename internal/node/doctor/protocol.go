// SPDX-License-Identifier: Apache-2.0

package doctor

import "github.com/drayage/dray/internal/spec/inventory"

// sctp says what a function that needs SCTP can have here. missing is why the kernel has
// none, or nil.
func sctp(missing error) inventory.Item {
	item := inventory.Item{Name: inventory.ProtocolSCTP, Status: inventory.OK, Version: "the kernel has it"}
	if missing != nil {
		item.Status, item.Version = inventory.Missing, ""
		item.Reason = "the kernel has none (" + missing.Error() + ")"
		item.Fix = "only for functions that use it: modprobe sctp, or write sctp: ip or sctp: udp for them in the chain file (docs/sctp.md)"
	}
	return item
}

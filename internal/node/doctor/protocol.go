// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/inventory"
)

// sctp says what a function that needs SCTP can have here: err is what host.ProbeSCTP returns.
func sctp(err error) inventory.Item {
	item := host.ProbeItem(inventory.ProtocolSCTP, err)
	if err == nil {
		item.Version = "the kernel has it"
	}
	return item
}

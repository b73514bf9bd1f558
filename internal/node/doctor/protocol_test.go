// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestSCTP: a probe that failed does not know whether the kernel has SCTP.
func TestSCTP(t *testing.T) {
	for status, err := range map[inventory.Status]error{
		inventory.OK: nil, inventory.Missing: &host.Unsupported{What: "SCTP", Why: "the kernel has none"}, inventory.Unknown: syscall.EMFILE,
	} {
		if item := sctp(err); item.Status != status || item.Name != inventory.ProtocolSCTP || (item.Version != "") != (err == nil) {
			t.Errorf("%v: %+v", err, item)
		}
	}
}

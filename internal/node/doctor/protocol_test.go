// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/spec/inventory"
)

func TestSCTP(t *testing.T) {
	if item := sctp(nil); item.Status != inventory.OK || item.Fix != "" {
		t.Errorf("with SCTP: %+v", item)
	}
	item := sctp(syscall.EPROTONOSUPPORT)
	if item.Status != inventory.Missing || !strings.Contains(item.Reason, "protocol not supported") || !strings.Contains(item.Fix, "sctp: udp") {
		t.Errorf("without: %+v", item)
	}
}

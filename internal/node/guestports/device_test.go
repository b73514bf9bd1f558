// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"strings"
	"testing"
	"time"
)

// TestAWindowStaysEmpty: the wait for a device that does not appear ends.
func TestAWindowStaysEmpty(t *testing.T) {
	before := devicePatience
	devicePatience = 20 * time.Millisecond
	defer func() { devicePatience = before }()
	if fd, err := (pci{}).open(0, 4096); fd != -1 || err == nil || !strings.Contains(err.Error(), "no device appears") {
		t.Errorf("descriptor %d, %v", fd, err)
	}
	if (pci{}).left(0) {
		t.Error("an empty window has memory")
	}
}

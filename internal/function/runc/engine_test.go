// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host/oci"
)

// TestAnEngineWithoutALog: it may have printed why it failed.
func TestAnEngineWithoutALog(t *testing.T) {
	err := engineError(oci.Container{Bundle: t.TempDir()}, "du", "sleep")
	if text := err.Error(); !strings.HasPrefix(text, "function du: runc: ") || !strings.Contains(text, "own log has what it printed") {
		t.Error(text)
	}
}

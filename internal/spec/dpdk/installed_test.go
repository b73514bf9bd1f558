// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drayage/dray/internal/spec/inventory"
)

// TestProbe finds a driver in the newest DPDK that has it, and reports what is missing.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"pmds-23.0/librte_net_memif.so.23", "pmds-25.0/librte_net_memif.so.25.0", "pmds-23.0/librte_net_ring.so"} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pattern := []string{filepath.Join(dir, "pmds-*")}
	for driver, version := range map[string]string{NetMemif: "DPDK 24.11", NetRing: "DPDK 22.11", NetAFXDP: ""} {
		item := probe(pattern, "x", driver)
		if item.Version != version || (item.Status == inventory.OK) != (version != "") || item.Name != "x" {
			t.Errorf("%s: %+v", driver, item)
		}
	}
	if item := probe(nil, "x", NetRing); item.Reason != "DPDK is not installed" || item.Fix == "" {
		t.Errorf("without DPDK: %+v", item)
	}
}

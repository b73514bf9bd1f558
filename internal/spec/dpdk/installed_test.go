// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// TestProbeWithoutDescriptors: what cannot be looked for is not missing. The limit is a process's,
// so another one asks.
func TestProbeWithoutDescriptors(t *testing.T) {
	if os.Getenv("DRAY_TEST_NO_FILES") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProbeWithoutDescriptors$", "-test.v")
		cmd.Env = append(os.Environ(), "DRAY_TEST_NO_FILES=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 16, Max: 16}); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Open("/dev/null"); err != nil {
			break
		}
	}
	if item := Probe("x", NetRing); item.Status != inventory.Unknown || !strings.Contains(item.Reason, "too many open files") {
		t.Errorf("%+v", item)
	}
	if item := ProbeDriver(); !strings.Contains(item.Reason, "too many open files") {
		t.Errorf("%+v", item)
	}
}

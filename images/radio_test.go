// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRadioOfOtherSources builds srsRAN's radio from what are not its sources.
func TestRadioOfOtherSources(t *testing.T) {
	empty, other := t.TempDir(), t.TempDir()
	rf := filepath.Join(other, "lib/src/phy/rf")
	if err := os.MkdirAll(rf, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rf, "rf_zmq_imp.c"), []byte("int changed;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{empty: "name the source folder of srsRAN 4G", other: "rf_zmq_imp.c is not that of srsRAN 4G at commit 1fab3df8"} {
		out, err := exec.Command("sh", "ran/radio/build.sh", source, empty, filepath.Join(empty, "out")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("error %v: %s", err, out)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
)

// TestShowable: a folder of programs is shown below a closed one, but not where
// machines would see too much, or nothing.
func TestShowable(t *testing.T) {
	above := t.TempDir()
	bin, link := filepath.Join(above, "bin"), filepath.Join(above, "link")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/tmp", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(above, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, fix := range map[string]string{
		bin: "chmod o+rx " + bin, "/tmp": "/tmp/dray", "/mnt": "/mnt/dray", link: "/tmp/dray",
	} {
		if err := showable(dir); !errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), fix) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{bin, "/usr/bin"} {
		if err := showable(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/library"
)

// TestFindDriver searches a folder without the driver, then one with it.
func TestFindDriver(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(library.Variable, dir)
	var missing *library.Error
	if file, err := FindDriver(); !errors.As(err, &missing) || !strings.Contains(missing.Reason, "the DPDK driver") {
		t.Errorf("in an empty folder: %q, %v", file, err)
	}
	if err := os.WriteFile(filepath.Join(dir, DriverFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if file, err := FindDriver(); err != nil || file != filepath.Join(dir, DriverFile) {
		t.Errorf("where it is: %q, %v", file, err)
	}
}

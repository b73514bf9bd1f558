// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindDriver looks in a folder without it, in one that everybody may write
// to, and in one that is as it should be.
func TestFindDriver(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(libVariable, dir)
	var missing *DriverError
	if file, err := FindDriver(); !errors.As(err, &missing) || !strings.Contains(missing.Fix, libVariable) {
		t.Errorf("in an empty folder: %q, %v", file, err)
	}
	if err := os.WriteFile(filepath.Join(dir, DriverFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if file, err := FindDriver(); err != nil || file != filepath.Join(dir, DriverFile) {
		t.Errorf("where it is: %q, %v", file, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if file, err := FindDriver(); !errors.As(err, &missing) || !strings.Contains(missing.Reason, "everybody may write to "+dir) {
		t.Errorf("in an open folder: %q, %v", file, err)
	}
}

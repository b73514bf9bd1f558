// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindDriver searches a folder without the driver, a world-writable folder, and a
// good one.
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
	if file, err := FindDriver(); !errors.As(err, &missing) || !strings.Contains(missing.Reason, "every user may write to "+dir) {
		t.Errorf("in an open folder: %q, %v", file, err)
	}
}

// TestFindInstalledDriver searches the folder of an installed package.
func TestFindInstalledDriver(t *testing.T) {
	t.Setenv(libVariable, "")
	dir := t.TempDir()
	before := driverDirs
	t.Cleanup(func() { driverDirs = before })
	driverDirs = []string{filepath.Join(dir, "pmds-*")}
	for _, abi := range []string{"pmds-23.0", "pmds-25.0"} {
		if err := os.Mkdir(filepath.Join(dir, abi), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := filepath.Join(dir, "pmds-23.0", DriverFile)
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if file, err := FindDriver(); err != nil || file != want {
		t.Errorf("it is %q, error %v; want %s", file, err, want)
	}
}

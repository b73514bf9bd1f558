// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/library"
)

// TestLibrariesAreFoundAsThoseOfFunctions: in the folder that DRAY_LIB names, unless
// every user may write to it.
func TestLibrariesAreFoundAsThoseOfFunctions(t *testing.T) {
	const name = "libdray_some.so"
	dir := t.TempDir()
	t.Setenv(library.Variable, dir)
	if path, err := ownProgram(name); err == nil || !strings.Contains(err.Error(), "the library "+name+" is not in "+dir) {
		t.Errorf("in an empty folder: %q, %v", path, err)
	}
	want := filepath.Join(dir, name)
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if path, err := ownProgram(name); err != nil || path != want {
		t.Errorf("where it is: %q, %v", path, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if path, err := ownProgram(name); err == nil || !strings.Contains(err.Error(), "every user may write to "+dir) {
		t.Errorf("in an open folder: %q, %v", path, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWhatIsNeededIsNamedWithItsPackage: existing ones are found.
func TestWhatIsNeededIsNamedWithItsPackage(t *testing.T) {
	if path, err := NeedProgram("x", "sh", "dash"); err != nil || path == "" {
		t.Errorf("sh: %q, %v", path, err)
	}
	if path, err := NeedFile("x", "/etc", "base-files"); err != nil || path != "/etc" {
		t.Errorf("/etc: %q, %v", path, err)
	}
	_, program := NeedProgram("x", "no-such-program", "pkg")
	_, file := NeedFile("x", "/no/such/file", "pkg")
	for err, want := range map[error]string{
		program: "x: unsupported: the program no-such-program is not installed (apt install pkg)",
		file:    "x: unsupported: /no/such/file does not exist (apt install pkg)",
	} {
		if !errors.Is(err, ErrUnsupported) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Not t.Parallel: the program is next to the test's own, and PATH changes.
func TestOwnProgramIsBesideOrInThePath(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	beside := filepath.Join(filepath.Dir(self), "dray-own-program")
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	inPath := filepath.Join(dir, filepath.Base(beside))
	if _, err := OwnProgram(filepath.Base(beside)); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing program: %v", err)
	}
	must(t, os.WriteFile(inPath, []byte("#!/bin/sh\n"), 0o755))
	t.Cleanup(func() { os.Remove(beside) })
	for mode, want := range map[os.FileMode]string{0o644: inPath, 0o755: beside} {
		must(t, os.WriteFile(beside, []byte("#!/bin/sh\n"), mode))
		must(t, os.Chmod(beside, mode))
		if got, err := OwnProgram(filepath.Base(beside)); err != nil || got != want {
			t.Errorf("with a file of mode %v next to it: %q, %v", mode, got, err)
		}
	}
}

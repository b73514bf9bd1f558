// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// TestDirectoriesHaveTheirModeWhateverTheUmask.
func TestDirectoriesHaveTheirModeWhateverTheUmask(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	base := t.TempDir()
	for range 2 { // the second finds them there
		testenv.Must(t, MakeDirs(filepath.Join(base, "a", "b"), 0o711))
	}
	for _, dir := range []string{"a", "a/b"} {
		if info, err := os.Stat(filepath.Join(base, dir)); err != nil || info.Mode().Perm() != 0o711 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	if err := MakeDir(filepath.Join(base, "a"), 0o755); !errors.Is(err, fs.ErrExist) {
		t.Errorf("one that exists: %v", err)
	}
	testenv.Must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	if err := MakeDirs(filepath.Join(base, "file", "dir"), 0o755); err == nil {
		t.Error("below a file")
	}
}

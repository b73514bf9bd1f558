// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"testing"
)

// TestWhatIsNeededIsNamedWithItsPackage: and what is there is found.
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
		file:    "x: unsupported: /no/such/file is not there (apt install pkg)",
	} {
		if !errors.Is(err, ErrUnsupported) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

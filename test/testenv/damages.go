// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Damages are what can become of a file that a program keeps, by name. newer is what a newer
// version might write.
func Damages(newer string) map[string]func(t *testing.T, path string) {
	write := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			Must(t, os.WriteFile(vacant(t, path), []byte(content), 0o600))
		}
	}
	link := func(to string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			Must(t, os.Symlink(to, vacant(t, path)))
		}
	}
	return map[string]func(t *testing.T, path string){
		"empty":   write(""),
		"garbage": write("\x00{]\n\xff\n"),
		"newer":   write(newer + "\n"),
		"huge": func(t *testing.T, path string) {
			t.Helper()
			write("")(t, path)
			Must(t, os.Truncate(path, 1<<40)) // a hole
		},
		"a directory": func(t *testing.T, path string) {
			t.Helper()
			Must(t, os.MkdirAll(filepath.Join(vacant(t, path), "below"), 0o700))
		},
		"a named pipe": func(t *testing.T, path string) {
			t.Helper()
			Must(t, syscall.Mkfifo(vacant(t, path), 0o600))
		},
		"a link to /dev/zero": link("/dev/zero"),
		"a link to nothing":   link("/no/such/file"),
	}
}

// vacant is the path, at which there is nothing any more.
func vacant(t *testing.T, path string) string {
	t.Helper()
	Must(t, os.RemoveAll(path))
	return path
}

// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
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
		"garbage": write("\x00{]\n\xff\n" + strings.Repeat("\n", 1<<20)),
		"newer":   write(newer + "\n"),
		"huge": func(t *testing.T, path string) {
			t.Helper()
			write("")(t, path)
			Must(t, os.Truncate(path, 1<<40)) // a hole
		},
		"cut off": func(t *testing.T, path string) {
			t.Helper()
			content := []byte(newer)
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
				content, err = os.ReadFile(path)
				Must(t, err)
			}
			write(string(content[:len(content)/2]))(t, path)
		},
		"a directory": func(t *testing.T, path string) {
			t.Helper()
			Must(t, os.MkdirAll(filepath.Join(vacant(t, path), "below"), 0o700))
		},
		"a named pipe": func(t *testing.T, path string) {
			t.Helper()
			Must(t, syscall.Mkfifo(vacant(t, path), 0o600))
		},
		"a socket": func(t *testing.T, path string) {
			t.Helper()
			dir, err := os.Open(filepath.Dir(vacant(t, path))) // a socket's address is short
			Must(t, err)
			defer dir.Close()
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/.socket", dir.Fd()), Net: "unix"})
			Must(t, err)
			l.SetUnlinkOnClose(false)
			Must(t, l.Close())
			Must(t, os.Rename(filepath.Join(dir.Name(), ".socket"), path))
		},
		"a link to /dev/zero": link("/dev/zero"),
		"a link to nothing":   link("/no/such/file"),
	}
}

// Unreadable has each attempt to open a file fail for now, as without descriptors, until the
// function that it returns is called. The file is whole.
func Unreadable(t *testing.T, path string) (end func()) {
	t.Helper()
	f, err := os.Open(path)
	Must(t, err)
	// With a lease, an open that does not wait fails with EAGAIN.
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETLEASE, syscall.F_WRLCK); errno != 0 {
		t.Fatal(errno)
	}
	end = func() { _ = f.Close() }
	t.Cleanup(end)
	return end
}

// vacant is the path, at which there is nothing any more.
func vacant(t *testing.T, path string) string {
	t.Helper()
	Must(t, os.RemoveAll(path))
	return path
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that this process inherited reaches no program that it starts.
func TestCloseInheritedOnExec(t *testing.T) {
	for name, keep := range map[string]func() error{"at once": CloseInheritedOnExec, "one by one": closeOneByOne} {
		t.Run(name, func(t *testing.T) {
			fd, err := unix.Dup(0) // unlike a file that Go opens, it stays open in programs
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if !inChild(t, fd) {
				t.Fatal("the descriptor is not inherited to begin with")
			}
			if err := keep(); err != nil {
				t.Fatal(err)
			}
			if inChild(t, fd) {
				t.Error("a program still gets the file")
			}
		})
	}
}

// inChild reports whether a program gets a descriptor.
func inChild(t *testing.T, fd int) bool {
	t.Helper()
	cmd := exec.Command("sh", "-c", `[ -e /proc/self/fd/"$0" ] && echo yes || echo no`, strconv.Itoa(fd))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) == "yes"
}

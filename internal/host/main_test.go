// SPDX-License-Identifier: Apache-2.0

package host

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain fails the run if a test leaves a file descriptor open.
func TestMain(m *testing.M) {
	if os.Getenv(headless) != "" {
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
	before := openFiles()
	code := m.Run()
	if leaked := leakedFiles(before); code == 0 && len(leaked) > 0 {
		fmt.Fprintln(os.Stderr, "file descriptors left open:", strings.Join(leaked, ", "))
		code = 1
	}
	os.Exit(code)
}

func openFiles() map[string]bool {
	open := map[string]bool{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		// The Go runtime's poller, and the cgroup library's one root directory.
		once := strings.HasPrefix(target, "anon_inode:[event") || target == "/sys/fs/cgroup"
		if err == nil && !once {
			open[e.Name()+" → "+target] = true
		}
	}
	return open
}

// leakedFiles gives ending goroutines time to finish: on a busy machine that takes seconds.
func leakedFiles(before map[string]bool) []string {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var leaked []string
		for file := range openFiles() {
			if !before[file] && !strings.HasSuffix(file, "/fd") {
				leaked = append(leaked, file)
			}
		}
		if len(leaked) == 0 || time.Now().After(deadline) {
			return leaked
		}
	}
}

// unique is a name that no other test on this machine uses, short enough for an
// interface.
func unique(t testing.TB) string {
	t.Helper()
	b := make([]byte, 4)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return "drayt" + hex.EncodeToString(b)
}

// testDir is a directory below /run that all users can traverse.
func testDir(t testing.TB) string {
	t.Helper()
	dir := "/run/" + unique(t)
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeDir(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// testNetns is a pinned network namespace.
func testNetns(t testing.TB) Netns {
	t.Helper()
	ns := Netns{Path: filepath.Join(testDir(t), "net")}
	if err := CreateNetns(ns.Path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeNamespace(ns.Path); err != nil {
			t.Error(err)
		}
	})
	return ns
}

func mac(t testing.TB, s string) net.HardwareAddr {
	t.Helper()
	m, err := net.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

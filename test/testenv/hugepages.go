// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	hugePagesDir  = "/sys/kernel/mm/hugepages/hugepages-2048kB"
	hugePagesFile = hugePagesDir + "/nr_hugepages"
)

// HugePages adds n huge pages of 2 MiB to the machine's for the length of a test.
// It skips the test if the kernel has none to give.
func HugePages(t testing.TB, n int) {
	t.Helper()
	if got := addHugePages(t, n); got < n {
		addHugePages(t, -got)
		t.Skipf("the kernel gives %d of %d huge pages", got, n)
	}
	t.Cleanup(func() { addHugePages(t, -n) })
}

// addHugePages returns how many were added. Concurrent test programs take turns.
func addHugePages(t testing.TB, n int) int {
	t.Helper()
	lock, err := os.Open(hugePagesDir)
	if err != nil {
		t.Skipf("no huge pages of 2 MiB: %v", err)
	}
	defer lock.Close() // also unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	before := countHugePages(t)
	if err := os.WriteFile(hugePagesFile, []byte(strconv.Itoa(max(0, before+n))), 0); err != nil {
		t.Fatal(err)
	}
	return countHugePages(t) - before
}

func countHugePages(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(hugePagesFile)
	if err != nil {
		t.Skipf("no huge pages of 2 MiB: %v", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

// Package testenv checks a test's requirements on the machine. An unmet
// requirement skips the test, with the reason; if the project's own set-up should
// have met it (DRAY_TEST_STRICT=1, as `make test` sets), the test fails instead. It
// also has the helpers for steps that must succeed, and for slow machines.
package testenv

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/inventory"
)

// Root skips a test that cannot run without root. With DRAY_TEST_UNIT=1, as `make
// check` sets, it also skips as root.
func Root(t testing.TB) {
	t.Helper()
	switch {
	case os.Getenv("DRAY_TEST_UNIT") == "1":
		t.Skip("no unit test: it makes network namespaces and cgroups")
	case os.Geteuid() != 0:
		unmet(t, "needs root: it makes network namespaces and cgroups")
	}
}

// Program skips a test that needs a host program.
func Program(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			unmet(t, "needs the program "+name+": run scripts/setup.sh test")
		}
	}
}

// File skips a test that needs a file of a Debian package.
func File(t testing.TB, name string) {
	t.Helper()
	if _, err := os.Stat(name); err != nil {
		unmet(t, "needs the file "+name+": run scripts/setup.sh test")
	}
}

// Kernel skips a test if a probe found its kernel feature missing. Set-up cannot
// fix a kernel, so this never fails.
func Kernel(t testing.TB, item inventory.Item) {
	t.Helper()
	if item.Status == inventory.Missing {
		t.Skipf("%s: %s (%s)", item.Name, item.Reason, item.Fix)
	}
}

func unmet(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("DRAY_TEST_STRICT") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Must ends the test if a step of it that should succeed has failed.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Patient is how long a test waits for what takes a known time here: a slow machine says in
// DRAY_TEST_PATIENCE how many seconds it needs for what takes 20 elsewhere.
func Patient(d time.Duration) time.Duration {
	seconds, err := strconv.Atoi(os.Getenv("DRAY_TEST_PATIENCE"))
	if err != nil || seconds <= 0 {
		return d
	}
	return d * time.Duration(seconds) / 20
}

// Measured fails if a trial did, unless its record says that other programs kept the sender from every CPU: such a trial is for the
// verdict to judge.
func Measured(t *testing.T, trial, problem string) {
	t.Helper()
	if problem != "" && !strings.Contains(problem, "it had no CPU") {
		t.Errorf("%s: %s", trial, problem)
	}
}

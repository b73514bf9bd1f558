// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"syscall"
	"testing"
	"time"
)

// ProcessorTime is how long this process has computed, on all CPUs together. It does
// not grow while other programs have the CPUs, so a limit on it holds on a busy machine.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

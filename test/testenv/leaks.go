// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host/leftover"
)

// leakPatience is how long removal may take: a thread or a killed process ends a
// little after the call that ended it, and later on a busy machine.
var leakPatience = Patient(20 * time.Second)

// NoLeaks fails the test if, after it and all its clean-up, anything remains on
// this machine whose name or path contains the filter: interfaces, qdiscs,
// namespaces, mounts, cgroups, processes, files. Tests run concurrently, so the
// filter is a name that only this test uses. Call it first: clean-ups run in
// reverse order.
func NoLeaks(t testing.TB, filter string) {
	t.Helper()
	if filter == "" {
		t.Fatal("NoLeaks needs a name that only this test uses")
	}
	t.Cleanup(func() {
		t.Helper()
		for deadline := time.Now().Add(leakPatience); ; time.Sleep(20 * time.Millisecond) {
			all, err := leftover.Take()
			if err != nil {
				t.Errorf("look for leaks: %v", err)
				return
			}
			left := all.Containing(filter)
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
				return
			}
		}
	})
}

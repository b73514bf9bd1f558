// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A thread in a cgroup gets real-time priority while the cgroup has a budget.
func TestRealtime(t *testing.T) {
	c := testCgroup(t)
	if out, err := exec.Command("chrt", "--fifo", "1", "true").CombinedOutput(); err != nil {
		t.Skipf("this test may not have real-time priority itself: %v: %s", err, out)
	}
	create(t, c, Limits{})
	tryFIFO := func() bool {
		cmd := start(t, Place{Cgroup: c}, "chrt --fifo 1 true")
		return cmd.Wait() == nil
	}
	budgets := func() (all string) {
		hs, err := hierarchies()
		must(t, err)
		for _, h := range hs {
			text, err := os.ReadFile(filepath.Join(h.mount, c.Path, fileRealtime))
			if err == nil {
				all += strings.TrimSpace(string(text))
			}
		}
		return all
	}
	before := budgets()
	if before != "" && tryFIFO() {
		t.Errorf("without a budget (%s) the kernel gives real-time priority", before)
	}
	undo, err := c.Realtime()
	must(t, err)
	if given := budgets(); before != "" && given == before {
		t.Errorf("the budget is still %s", given)
	}
	if !tryFIFO() {
		t.Error("no real-time priority with a budget")
	}
	must(t, undo())
	if after := budgets(); after != before {
		t.Errorf("a budget of %s remains, %s before", after, before)
	}
}

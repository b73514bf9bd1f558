// SPDX-License-Identifier: Apache-2.0

package published

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		without, within string
		holds           bool
		why             string
	}{
		{"yes", "no: Permission denied", true, ""},
		{"yes", killed, true, ""},
		{"yes", "yes", false, ""},
		{"no: Permission denied", "no: Permission denied", false, "proves nothing"},
		{"unsupported: one CPU", "unsupported: one CPU", false, "one CPU"},
		{"yes", "", false, "did not finish"},
		{"yes", "unsupported: nothing", false, "did not finish"},
	} {
		holds, why := judge(c.without, c.within)
		ok := holds == c.holds && (why == "") == (c.why == "")
		if c.why == "proves nothing" {
			ok = ok && strings.Contains(why, "without the protection")
		} else {
			ok = ok && strings.Contains(why, c.why)
		}
		if !ok {
			t.Errorf("without %q, within %q: %v, %q", c.without, c.within, holds, why)
		}
	}
}

// Each figure of the vocabulary has a check, and each check is a program.
func TestChecksAreComplete(t *testing.T) {
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("there is no perl")
	}
	var names []experiment.Figure
	for _, huge := range []string{"", "the pool is empty"} {
		tg := target{pid: 1, memory: 3, huge: 4, secret: "s", address: "a", shadow: "1:2", home: "1:3", otherCPU: 0, otherNode: 1, hugePages: huge}
		if huge != "" {
			tg.huge = -1
		}
		for _, c := range checks {
			if out, err := exec.Command(perl, "-c", "-e", prologue+c.script(tg)).CombinedOutput(); err != nil {
				t.Errorf("%s: %s", c.figure, out)
			}
			if huge == "" {
				names = append(names, c.figure)
			}
		}
	}
	if want := experiment.Checks(); !slices.Equal(names, want) {
		t.Errorf("checks of %v, figures %v", names, want)
	}
	if out, err := exec.Command(perl, "-c", "-e", prologue+strings.Replace(neighbour, "HUGE", "0", 1)).CombinedOutput(); err != nil {
		t.Errorf("the neighbour: %s", out)
	}
}

func TestHugePagesAreMissed(t *testing.T) {
	row := experiment.Row{Figure: "limits_huge_pages"}
	if why := Unanswered(inventory.Host{}, row); !strings.Contains(why, "vm.nr_hugepages") {
		t.Errorf("an empty pool is no reason: %q", why)
	}
	if why := Unanswered(inventory.Host{HugePages: []inventory.HugePg{{Size: hugePage, Total: 9, Free: hugePagesNeeded}}}, row); why != "" {
		t.Error(why)
	}
	if why := Unanswered(inventory.Host{}, experiment.Row{Figure: "hides_cpus"}); why != "" {
		t.Error(why)
	}
}

func TestPermittedSyscalls(t *testing.T) {
	const bundle = `{"linux":{"seccomp":{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
		{"names":["read","write"],"action":"SCMP_ACT_ALLOW"},{"names":["clone3"],"action":"SCMP_ACT_ERRNO"},
		{"names":["clone"],"action":"SCMP_ACT_ALLOW","args":[{"index":0}]}]}}}`
	got, err := permittedSyscalls([]byte(bundle))
	if err != nil || !got["read"] || !got["clone"] || got["clone3"] || got["mount"] {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{`{}`, `{`, `{"linux":{"seccomp":{"defaultAction":"SCMP_ACT_ALLOW"}}}`} {
		if _, err := permittedSyscalls([]byte(bad)); err == nil {
			t.Errorf("%s filters", bad)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
)

// A run resumes only if nothing has changed that affects its figures.
func TestDifferencesOfAResumedRun(t *testing.T) {
	host := func() inventory.Host {
		return inventory.Host{Hostname: "h", CPUModel: "c", Kernel: "6.18", CmdLine: "quiet", Governor: "none", CPUs: []int{0, 1}, MemoryFree: 1, Load1: 0.5}
	}
	by := report.Program{Dray: "devel", Build: "0123"}
	later := host()
	later.MemoryFree, later.Load1 = 2, 3 // vary by themselves
	if d := differences(host(), later, by, by); len(d) != 0 {
		t.Errorf("the same host and program differ by %v", d)
	}
	for want, change := range map[string]func(*inventory.Host, *report.Program){
		`free CPUs "[0 1]", now "[0]"`:       func(h *inventory.Host, _ *report.Program) { h.CPUs = h.CPUs[:1] },
		`kernel command line "quiet", now`:   func(h *inventory.Host, _ *report.Program) { h.CmdLine += " isolcpus=1" },
		`governor "none", now "performance"`: func(h *inventory.Host, _ *report.Program) { h.Governor = "performance" },
		`build of dray "0123", now "4567"`:   func(_ *inventory.Host, p *report.Program) { p.Build = "4567" },
		`host "h", now "other"`:              func(h *inventory.Host, _ *report.Program) { h.Hostname = "other" },
		`kernel "6.18", now "6.19"`:          func(h *inventory.Host, _ *report.Program) { h.Kernel = "6.19" },
		`processor "c", now "d"`:             func(h *inventory.Host, _ *report.Program) { h.CPUModel = "d" },
		`dray "devel", now "v1"`:             func(_ *inventory.Host, p *report.Program) { p.Dray = "v1" },
	} {
		is, now := host(), by
		change(&is, &now)
		if d := strings.Join(differences(host(), is, by, now), "; "); !strings.HasPrefix(d, want) || strings.Contains(d, ";") {
			t.Errorf("got %s, want %s", d, want)
		}
	}
	if p, err := Program("v1"); err != nil || len(p.Build) != 16 {
		t.Errorf("this program is %+v, %v", p, err)
	}
}

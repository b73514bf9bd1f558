// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/test/testenv"
)

// everything asks for a change of each kind.
func everything(s *System) Request {
	return Request{HugePages: s.DefaultHugePages(), Isolate: s.DefaultIsolation(), Governor: "performance", Bind: []string{"eth1"}}
}

// lines are a report's changes and skips, in short.
func lines(r *Report) []string {
	var all []string
	for _, c := range r.grouped() {
		line := c.Setting + ": " + orEmpty(c.From) + " → " + orEmpty(c.To) + ", " + string(c.Outcome)
		if c.Reason != "" {
			line += ": " + c.Reason
		}
		all = append(all, line)
	}
	for _, s := range r.Skipped {
		all = append(all, s.Part+": "+s.Reason)
	}
	return all
}

func TestPlanApplyRevert(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	before := snapshot(t, s)
	plan, err := s.Plan(everything(s))
	testenv.Must(t, err)
	want := []string{
		"hugepages 2Mi: 3 → 512, planned",
		"governor of policy 0: powersave → performance, planned",
		"CPUs of init.scope: all → 0-1,4-5, planned",
		"CPUs of system.slice: 0-5 → 0-1,4-5, planned",
		"CPUs of kernel work: ff → 33, planned",
		"CPUs of new interrupts: ff → 33, planned",
		"CPUs of interrupts 24-25: 0-7 → 0-1,4-5, planned",
		"CPUs of interrupts 27: 6 → 0-1,4-5, planned",
		"CPUs of interrupts 28: 7 → 0-1,4-5, planned",
		"driver of 0000:01:00.0: ixgbe → vfio-pci (driver_override), planned",
	}
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Error(diff)
	}
	boot := &Boot{
		Arguments: "isolcpus=managed_irq,domain,2-3,6-7 nohz_full=2-3,6-7 rcu_nocbs=2-3,6-7 irqaffinity=0-1,4-5 hugepagesz=2M hugepages=512 intel_iommu=on",
		Fix:       "add them to the kernel's command line, in the boot loader or in the hypervisor's settings of this machine, then reboot",
	}
	if diff := cmp.Diff(boot, plan.Boot); diff != "" {
		t.Error(diff)
	}
	if note := "docker may still run programs on CPUs 2-3,6-7: what made them chooses their CPUs"; !slices.Contains(plan.Notes, note) {
		t.Errorf("notes %q", plan.Notes)
	}
	if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
		t.Errorf("a plan changed something: %s", diff)
	}
	done, err := s.Apply(context.Background(), state, everything(s))
	testenv.Must(t, err)
	for i := range want {
		want[i] = strings.Replace(want[i], "planned", "changed", 1)
	}
	want[8] = "CPUs of interrupts 28: 7 → 0-1,4-5, left: the kernel manages this interrupt itself"
	if diff := cmp.Diff(want, lines(done)); diff != "" {
		t.Error(diff)
	}
	if driver, err := s.driver(card); err != nil || driver != "vfio-pci (driver_override)" {
		t.Errorf("driver %q, %v", driver, err)
	}
	undone, err := s.Revert(context.Background(), state)
	testenv.Must(t, err)
	if first := lines(undone)[0]; len(undone.Changes) != 10 || first != "driver of 0000:01:00.0: vfio-pci (driver_override) → ixgbe, restored" {
		t.Errorf("%d changes, the first is %s", len(undone.Changes), first)
	}
	if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
		t.Errorf("not as before: %s", diff)
	}
	if again, err := s.Revert(context.Background(), state); err != nil || len(again.Changes) > 0 {
		t.Errorf("undone twice: %v, %v", lines(again), err)
	}
}

// Each part may be missing.
func TestMissingParts(t *testing.T) {
	s := newFake(t, map[string]string{
		"sys/kernel/mm/hugepages": "", "sys/devices/system/cpu/cpufreq": "", "sys/fs/cgroup": "", "sys/devices/virtual/workqueue": "", "proc/irq": "",
		"sys/devices/system/cpu/online": "0-3\n", "usr/sbin/grubby": "#!\n",
	})
	r := everything(s)
	r.Bind, r.Isolate = nil, []int{2, 3}
	plan, err := s.Plan(r)
	testenv.Must(t, err)
	want := []string{
		"hugepages 2Mi: this kernel has no pages of that size",
		"governor: no cpufreq on this machine: nothing to do",
		"CPUs of programs: no cgroup v2 hierarchy at /sys/fs/cgroup: only the boot command line keeps programs off CPUs",
		"CPUs of kernel work: this kernel does not offer it",
		"CPUs of new interrupts: this kernel does not offer it",
		"drivers: no network card was named with --bind",
	}
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(plan.Boot.Fix, "run `grubby --update-kernel=ALL --args=\"isolcpus=") {
		t.Error(plan.Boot.Fix)
	}
	done, err := s.Apply(context.Background(), t.TempDir(), r)
	if err != nil || len(done.Changes) > 0 {
		t.Errorf("%v, %v", done, err)
	}
	if plan, err = s.Plan(Request{}); err != nil || len(plan.Changes) > 0 || plan.Boot != nil {
		t.Errorf("nothing was asked for: %+v, %v", plan, err)
	}
}

func TestDefaults(t *testing.T) {
	for online, want := range map[string][]int{"0-7\n": {2, 3, 6, 7}, "0-3\n": {2, 3}, "0-2\n": nil, "0-1\n": nil} {
		changes := map[string]string{"sys/devices/system/cpu/online": online, "proc/meminfo": "MemTotal: 4000000 kB\n"}
		if online != "0-7\n" {
			changes["sys/devices/system/cpu/cpu0"], changes["sys/devices/system/cpu/cpu1"] = "", ""
		}
		s := newFake(t, changes)
		if got := s.DefaultIsolation(); !slices.Equal(got, want) {
			t.Errorf("of %q: %v, want %v", online, got, want)
		}
		if got := s.DefaultHugePages()[0].Count; got != 244 {
			t.Errorf("%d pages, want an eighth of the memory", got)
		}
	}
}

// What a machine cannot give is named, and other settings change.
func TestLessThanAskedFor(t *testing.T) {
	s := newFake(t, map[string]string{"sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors": "schedutil\n"})
	done, err := s.Apply(context.Background(), t.TempDir(), Request{HugePages: []Pages{{page2M, 700}, {page1G, 40}}, Governor: "performance"})
	testenv.Must(t, err)
	want := []string{
		"hugepages 2Mi: 3 → 700, partly: the kernel has memory for 600 only; at boot there is more: see the command line",
		"hugepages 1Gi: 0 → 40, left: this would take 40Gi more, and half of the 11718Mi available: ask for fewer with --hugepages",
		"governor of policy 0: powersave → performance, left: its driver does not offer it; choose from: schedutil",
	}
	if diff := cmp.Diff(want, lines(done)[:3]); diff != "" {
		t.Error(diff)
	}
}

// Something else has changed values since: those are left, and named.
func TestOthersChangedItSince(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	_, err := s.Apply(context.Background(), state, everything(s))
	testenv.Must(t, err)
	pages := Key{Kind: kindHugePages, Size: page2M}
	testenv.Must(t, s.set(pages.file(), "100"))
	testenv.Must(t, os.RemoveAll(filepath.Join(s.root, "proc/irq/24")))
	undone, err := s.Revert(context.Background(), state)
	testenv.Must(t, err)
	got := lines(undone)
	for _, want := range []string{
		"hugepages 2Mi: 100 → 3, left: it is 100, which dray did not set: something else has changed it since",
		"CPUs of interrupts 24: all → 0-7, left: it no longer exists",
		"CPUs of interrupts 25: 0-1,4-5 → 0-7, restored",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if now, _ := s.value(pages); now != "100" {
		t.Errorf("%s pages", now)
	}
}

// Settings applied twice go back to the first value; after a change by something else, to that one.
func TestApplyTwice(t *testing.T) {
	pages := Key{Kind: kindHugePages, Size: page2M}
	for between, want := range map[string]string{"": "3", "20": "20"} {
		s, state := newFake(t, nil), t.TempDir()
		for _, n := range []int{10, 30} {
			_, err := s.Apply(context.Background(), state, Request{HugePages: []Pages{{page2M, n}}})
			testenv.Must(t, err)
			if n == 10 && between != "" {
				testenv.Must(t, s.set(pages.file(), between))
			}
		}
		_, err := s.Revert(context.Background(), state)
		testenv.Must(t, err)
		if now, _ := s.value(pages); now != want {
			t.Errorf("after %q in between: %s pages, want %s", between, now, want)
		}
	}
}

// After a reboot there is nothing to restore.
func TestAfterReboot(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	_, err := s.Apply(context.Background(), state, everything(s))
	testenv.Must(t, err)
	after := snapshot(t, s)
	s.bootID = "boot-2"
	undone, err := s.Revert(context.Background(), state)
	if err != nil || len(undone.Changes) > 0 {
		t.Errorf("%v, %v", lines(undone), err)
	}
	if diff := cmp.Diff(after, snapshot(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedCPUs(t *testing.T) {
	s := newFake(t, nil)
	for _, test := range []struct {
		cpu  int
		says string
	}{{0, "CPU 0 cannot be kept free"}, {9, "CPU 9 is not online: choose from 0-7"}} {
		if _, err := s.Plan(Request{Isolate: []int{test.cpu}}); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("CPU %d: %v", test.cpu, err)
		}
	}
}

func TestMask(t *testing.T) {
	for _, test := range []struct {
		now     string
		isolate []int
		want    string
	}{
		{"3", []int{1}, "1"}, {"ff", []int{2, 3, 6, 7}, "33"},
		{"0000ffff,ffffffff", []int{0, 32, 40}, "0000fefe,fffffffe"}, {"00000100,00000000", []int{40}, "00000000,00000003"},
	} {
		if got, err := maskWithout(test.now, test.isolate, []int{0, 1}); err != nil || got != test.want {
			t.Errorf("%s without %v: %s, want %s: %v", test.now, test.isolate, got, test.want, err)
		}
	}
	if _, err := maskWithout("0-3", nil, nil); err == nil {
		t.Error("a list is no mask")
	}
}

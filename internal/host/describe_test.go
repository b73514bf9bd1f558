// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/spec/inventory"
)

func TestDescribeThisMachine(t *testing.T) {
	h, err := Describe()
	must(t, err)
	if h.Kernel == "" || h.OS == "unknown" || len(h.CPUs) == 0 || !slices.IsSorted(h.CPUs) ||
		h.NUMANodes < 1 || h.MemoryTotal < h.MemoryFree || h.MemoryFree == 0 || len(h.BootID) != 36 ||
		h.Governor == "" || time.Since(h.Time) > time.Minute || h.Load1 < 0 || h.CPUModel == "unknown" {
		t.Errorf("%+v", h)
	}
	if !slices.Contains([]string{"v1", "v2", "hybrid"}, h.Cgroup) {
		t.Errorf("cgroup mode %q", h.Cgroup)
	}
}

// tree writes files below a directory that acts as the root.
func tree(t *testing.T, files map[string]string) root {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	return root(dir)
}

func TestDescribeOtherMachines(t *testing.T) {
	base := map[string]string{
		"proc/meminfo":           "MemTotal:       4000 kB\nMemFree: 1 kB\nMemAvailable:   3000 kB\n",
		"proc/loadavg":           "1.25 0.5 0.1 2/345 6789\n",
		"proc/cmdline":           "root=/dev/vda isolcpus=2-3\n",
		"proc/cpuinfo":           "processor : 0\nmodel name\t: Some CPU @ 2GHz\nflags\t\t: fpu hypervisor sse\n",
		"etc/os-release":         "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n",
		"sys/kernel/realtime":    "1\n",
		"sys/class/dmi/id/empty": "",
		"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc kvm-clock \n",
		"sys/devices/system/cpu/isolated":                                   "2-3\n",
		"sys/devices/system/node/online":                                    "0-1\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages":          "1\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages":        "0\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":             "512\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages":           "512\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages":           "2\n",
		"sys/kernel/mm/hugepages/unknown/nr_hugepages":                      "9\n",
	}
	h, err := tree(t, base).describe()
	must(t, err)
	if !h.Realtime || h.Virtual != "KVM" || h.OS != "Debian GNU/Linux 12" || h.NUMANodes != 2 ||
		h.Load1 != 1.25 || h.MemoryTotal != 4000<<10 || h.MemoryFree != 3000<<10 || h.CPUModel != "Some CPU @ 2GHz" ||
		h.Governor != "none" || h.CmdLine != "root=/dev/vda isolcpus=2-3" {
		t.Errorf("%+v", h)
	}
	if diff := cmp.Diff([]int{2, 3}, h.Isolated); diff != "" {
		t.Error(diff)
	}
	pages := []inventory.HugePg{{Size: 2 << 20, Total: 512, Free: 510}, {Size: 1 << 30, Total: 1}}
	if diff := cmp.Diff(pages, h.HugePages); diff != "" {
		t.Error(diff)
	}

	base["sys/class/dmi/id/product_name"] = "VMware7,1\n"
	if h, err = tree(t, base).describe(); err != nil || h.Virtual != "VMware7,1" {
		t.Errorf("hypervisor %q, %v", h.Virtual, err)
	}

	base["proc/cpuinfo"] = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
	h, err = tree(t, base).describe()
	must(t, err)
	if h.Virtual != "" || h.CPUModel != "implementer 0x41 part 0xd0c" {
		t.Errorf("arm64 on bare metal: %q, %q", h.Virtual, h.CPUModel)
	}

	for file, content := range map[string]string{
		"proc/meminfo":                    "MemTotal: 99999999999999999999 kB\n",
		"proc/loadavg":                    "",
		"sys/devices/system/cpu/isolated": "3-1",
	} {
		broken := map[string]string{}
		for k, v := range base {
			broken[k] = v
		}
		broken[file] = content
		if _, err := tree(t, broken).describe(); err == nil {
			t.Errorf("no error from a broken %s", file)
		}
	}
}

func TestIsolatedCPUsCanBeGranted(t *testing.T) {
	cpuset := tree(t, map[string]string{"cpuset.cpus.effective": "0-3\n"})
	grantable := cpusetOf([]hierarchy{{mount: "/nowhere", controllers: []string{"cpu"}}, {mount: string(cpuset), v2: true, controllers: []string{"cpuset"}}})
	for _, test := range []struct{ allowed, isolated, want []int }{
		{[]int{0, 1}, []int{2, 3}, []int{0, 1, 2, 3}},
		{[]int{0, 1}, nil, []int{0, 1}},
		{[]int{0}, []int{3, 9}, []int{0, 3}}, // 9 is offline, or not ours
		{[]int{2, 3}, []int{2}, []int{2, 3}},
	} {
		if got := withIsolated(test.allowed, test.isolated, grantable); !slices.Equal(got, test.want) {
			t.Errorf("allowed %v, isolated %v: %v, want %v", test.allowed, test.isolated, got, test.want)
		}
	}
	if got := withIsolated([]int{0}, []int{1}, cpusetOf(nil)); !slices.Equal(got, []int{0}) {
		t.Errorf("without a cpuset controller: %v", got)
	}
}

func TestGovernor(t *testing.T) {
	r := tree(t, map[string]string{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
		"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "powersave\n",
	})
	for _, test := range []struct {
		cpus []int
		want string
	}{{[]int{0, 1}, "performance"}, {[]int{0, 2}, "performance,powersave"}, {[]int{7}, "none"}} {
		if got := r.governor(test.cpus); got != test.want {
			t.Errorf("CPUs %v: %q, want %q", test.cpus, got, test.want)
		}
	}
}

func TestIsRealtime(t *testing.T) {
	for version, want := range map[string]bool{
		"#1 SMP PREEMPT_RT Debian 6.1.115-1": true,
		"#1 SMP PREEMPT RT":                  true,
		"#1 SMP PREEMPT_DYNAMIC Debian":      false,
	} {
		if isRealtime(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

func TestCPUTimes(t *testing.T) {
	before, err := parseCPUTimes("cpu  100 0 50 800 50 0 0 0 30 0\ncpu0 1 2 3\n")
	must(t, err)
	after, err := parseCPUTimes("cpu  150 0 60 900 50 0 0 40 60 0\n")
	must(t, err)
	busy, stolen := after.Since(before)
	if busy != 0.5 || stolen != 0.2 { // 200 ticks: 50 user, 10 system, 100 idle, 40 stolen
		t.Errorf("busy %v, stolen %v", busy, stolen)
	}
	if busy, stolen := before.Since(before); busy != 0 || stolen != 0 {
		t.Errorf("in no time busy %v, stolen %v", busy, stolen)
	}
	back := CPUTimes{Total: before.Total + 10, Idle: before.Idle - 5}
	if busy, _ := back.Since(before); busy != 1 {
		t.Errorf("idle time went backwards: busy %v", busy)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a 0 0 0 0 0 0 0"} {
		if _, err := parseCPUTimes(bad); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
	now, err := ReadCPUTimes()
	if err != nil || now.Total == 0 || now.Idle > now.Total {
		t.Errorf("this machine: %+v, %v", now, err)
	}
}

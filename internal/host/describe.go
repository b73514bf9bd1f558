// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Describe reads this machine's cores, memory, kernel and settings. Fields that the
// kernel does not report stay empty; it fails only if it finds nothing useful.
func Describe() (inventory.Host, error) {
	h, err := root("/").describe()
	if err == nil && emulatedCPU() {
		h.Virtual = inventory.VirtualTCG
	}
	return h, err
}

// root is the parent of /proc, /sys and /etc.
type root string

func (r root) describe() (inventory.Host, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return inventory.Host{}, fmt.Errorf("uname: %w", err)
	}
	allowed, err := AllowedCPUs()
	if err != nil {
		return inventory.Host{}, err
	}
	isolated, err := cpulist.Parse(r.line("sys/devices/system/cpu/isolated"))
	if err != nil {
		return inventory.Host{}, fmt.Errorf("isolated CPUs: %w", err)
	}
	hs, err := hierarchies()
	if err != nil {
		return inventory.Host{}, err
	}
	isolated = append(isolated, cpulist.Without(sparedCPUs(hs), isolated)...)
	slices.Sort(isolated)
	cpus := withIsolated(allowed, isolated, cpusetOf(hs))
	total, free, err := r.memory()
	if err != nil {
		return inventory.Host{}, err
	}
	load, err := r.load1()
	if err != nil {
		return inventory.Host{}, err
	}
	version := unix.ByteSliceToString(uts.Version[:])
	return inventory.Host{
		Hostname:    unix.ByteSliceToString(uts.Nodename[:]),
		Kernel:      unix.ByteSliceToString(uts.Release[:]),
		CmdLine:     r.line("proc/cmdline"),
		OS:          r.osName(),
		Arch:        runtime.GOARCH,
		CPUModel:    r.cpuModel(),
		CPUs:        cpus,
		Isolated:    isolated,
		Governor:    r.governor(cpus),
		NUMANodes:   r.numaNodes(),
		MemoryTotal: total,
		MemoryFree:  free,
		HugePages:   r.hugePages(),
		Load1:       load,
		Realtime:    r.line("sys/kernel/realtime") == "1" || isRealtime(version),
		Virtual:     r.virtual(),
		Cgroup:      cgroupMode(hs),
		BootID:      r.line("proc/sys/kernel/random/boot_id"),
		Time:        time.Now(),
	}, nil
}

// line is a small file's content without the newline; empty if there is none.
func (r root) line(name string) string {
	b, err := os.ReadFile(filepath.Join(string(r), name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimRight(string(b), "\x00"))
}

// isRealtime reads the version text of uname: "#1 SMP PREEMPT_RT Debian 6.1…".
func isRealtime(version string) bool {
	return strings.Contains(version, "PREEMPT_RT") || strings.Contains(version, "PREEMPT RT")
}

func (r root) osName() string {
	for _, file := range []string{"etc/os-release", "usr/lib/os-release"} {
		if name := strings.Trim(r.field(file, "PRETTY_NAME", "="), `"'`); name != "" {
			return name
		}
	}
	return "unknown"
}

// field is the value of the first "key<separator>value" line of a file.
func (r root) field(file, key, separator string) string {
	f, err := os.Open(filepath.Join(string(r), file))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // a CPU's flags make long lines
	for lines.Scan() {
		k, v, found := strings.Cut(lines.Text(), separator)
		if found && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func (r root) cpuModel() string {
	if model := r.field("proc/cpuinfo", "model name", ":"); model != "" {
		return model
	}
	// arm64 has only numbers; the board name says more.
	if model := r.line("proc/device-tree/model"); model != "" {
		return model
	}
	if part := r.field("proc/cpuinfo", "CPU part", ":"); part != "" {
		return "implementer " + r.field("proc/cpuinfo", "CPU implementer", ":") + " part " + part
	}
	return "unknown"
}

// governor is the CPUs' scaling governor: "none" without cpufreq, several names if
// they differ.
func (r root) governor(cpus []int) string {
	var names []string
	for _, cpu := range cpus {
		name := r.line("sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/cpufreq/scaling_governor")
		if name == "" {
			name = "none"
		}
		if !strings.Contains(","+strings.Join(names, ",")+",", ","+name+",") {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// NUMANodes is the number of the host's NUMA nodes, at least 1.
func NUMANodes() int { return root("/").numaNodes() }

func (r root) numaNodes() int {
	// A list of nodes is written as a list of CPUs is.
	nodes, err := cpulist.Parse(r.line("sys/devices/system/node/online"))
	if err != nil || len(nodes) == 0 {
		return 1
	}
	return len(nodes)
}

func (r root) load1() (float64, error) {
	first, _, _ := strings.Cut(r.line("proc/loadavg"), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg: %w", err)
	}
	return load, nil
}

// virtual names the hypervisor; empty on bare metal.
func (r root) virtual() string {
	if kind := r.line("sys/hypervisor/type"); kind != "" {
		return kind // Xen
	}
	flags := " " + r.field("proc/cpuinfo", "flags", ":") + " "
	onARM := r.line("proc/device-tree/hypervisor/compatible")
	if !strings.Contains(flags, " hypervisor ") && onARM == "" {
		return ""
	}
	for _, name := range []string{r.line("sys/class/dmi/id/product_name"), r.line("sys/class/dmi/id/sys_vendor"), onARM} {
		if name != "" {
			return name
		}
	}
	// Without firmware tables, the hypervisor's clock source remains.
	clocks := r.line("sys/devices/system/clocksource/clocksource0/available_clocksource")
	for clock, name := range map[string]string{"kvm-clock": "KVM", "hyperv_clocksource": "Hyper-V"} {
		if strings.Contains(clocks, clock) {
			return name
		}
	}
	return "unknown hypervisor"
}

// withIsolated adds the isolated CPUs that a cpuset can grant. No process runs on
// them by default, so this process's affinity lacks them.
func withIsolated(allowed, isolated, grantable []int) []int {
	cpus := slices.Clone(allowed)
	for _, cpu := range isolated {
		if slices.Contains(grantable, cpu) {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// cpusetOf lists the CPUs that cgroups below the root can get; none if there is no
// cpuset controller.
func cpusetOf(hs []hierarchy) []int {
	return cpusetList(hs, "cpuset.cpus.effective", "cpuset.effective_cpus")
}

// cpusetList reads the first of the files that the cpuset controller has.
func cpusetList(hs []hierarchy, files ...string) []int {
	for _, h := range hs {
		if !h.has("cpuset") {
			continue
		}
		for _, file := range files {
			if list, err := cpulist.Parse(root(h.mount).line(file)); err == nil && len(list) > 0 {
				return list
			}
		}
	}
	return nil
}

func cgroupMode(hs []hierarchy) string {
	if cgroups.IsCgroup2UnifiedMode() {
		return "v2"
	}
	if slices.ContainsFunc(hs, func(h hierarchy) bool { return h.v2 }) {
		return "hybrid"
	}
	return "v1"
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMemoryNodes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, "sys/devices/system/node", name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("has_memory", "0-1,10\n")
	write("online", "0-2,10\n")
	write("power/control", "auto\n")
	write("node0/cpulist", "0-3\n")
	write("node1/cpulist", "4-7\n")
	write("node2/cpulist", "8\n")
	write("node10/cpulist", "9\n")
	for _, test := range []struct{ cpus, want []int }{
		{nil, nil},
		{[]int{2}, []int{0}},
		{[]int{5, 7}, []int{1}},
		{[]int{9, 4, 0}, []int{0, 1, 10}},
		{[]int{8}, nil},    // its node has no memory
		{[]int{0, 8}, nil}, // and so it needs that of some other
		{[]int{77}, nil},
	} {
		if got := root(dir).memoryNodes(test.cpus); !slices.Equal(got, test.want) {
			t.Errorf("CPUs %v are on nodes %v, want %v", test.cpus, got, test.want)
		}
	}
	if got := root(dir).allMemoryNodes(); !slices.Equal(got, []int{0, 1, 10}) {
		t.Errorf("nodes with memory: %v", got)
	}
	if got := root(t.TempDir()).memoryNodes([]int{0}); got != nil {
		t.Errorf("a kernel without NUMA has nodes %v", got)
	}
}

// TestCgroupNodes reads the nodes back: they are those of the CPUs.
func TestCgroupNodes(t *testing.T) {
	c := testCgroup(t)
	cpus, err := AllowedCPUs()
	must(t, err)
	hs, err := hierarchies()
	must(t, err)
	want := cpusetNodes(hs, cpus[:1])
	if want == "" {
		t.Skip("the nodes of this machine's CPUs have no memory, or cannot be granted")
	}
	create(t, c, Limits{CPUs: cpus[:1]})
	if got := file(t, c, "cpuset.mems"); got != want {
		t.Errorf("with CPU %d the cgroup has nodes %q, want %q", cpus[0], got, want)
	}
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// writeNodes returns a writer of /sys/devices/system/node files below dir.
func writeNodes(t *testing.T, dir string) func(name, text string) {
	return func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, "sys/devices/system/node", name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

func TestMemoryNodes(t *testing.T) {
	dir := t.TempDir()
	write := writeNodes(t, dir)
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
		{[]int{0, 8}, nil}, // and so it needs another's
		{[]int{77}, nil},
	} {
		if got := root(dir).memoryNodes(test.cpus); !slices.Equal(got, test.want) {
			t.Errorf("CPUs %v are on nodes %v, want %v", test.cpus, got, test.want)
		}
	}
	if got := root(dir).commonMemoryNode([]int{7, 4}); got == nil || *got != 1 {
		t.Errorf("CPUs of node 1 have the common node %v", got)
	}
	if got := root(dir).commonMemoryNode([]int{0, 4}); got != nil {
		t.Errorf("CPUs of two nodes have the common node %d", *got)
	}
	write("has_memory", "1\n")
	if got := root(dir).commonMemoryNode([]int{4}); got != nil {
		t.Errorf("on a host with one node, node %d is preferred", *got)
	}
	write("has_memory", "0-1,10\n")
	if got := root(dir).allMemoryNodes(); !slices.Equal(got, []int{0, 1, 10}) {
		t.Errorf("nodes with memory: %v", got)
	}
	if got := root(t.TempDir()).memoryNodes([]int{0}); got != nil {
		t.Errorf("a kernel without NUMA has nodes %v", got)
	}
}

func TestNodesHold(t *testing.T) {
	dir := t.TempDir()
	write := writeNodes(t, dir)
	for _, node := range []string{"0", "1"} {
		write("node"+node+"/meminfo", "Node "+node+" MemTotal:        1024 kB\nNode "+node+" MemFree:          12 kB\n")
	}
	write("node0/hugepages/hugepages-2048kB/nr_hugepages", "2\n")
	write("node1/hugepages/hugepages-2048kB/nr_hugepages", "1\n")
	write("node1/hugepages/hugepages-1048576kB/nr_hugepages", "0\n")
	const mega, giga = 2 << 20, 1 << 30
	for _, test := range []struct {
		nodes  []int
		limits Limits
		want   bool
	}{
		{[]int{0}, Limits{}, true},
		{[]int{0}, Limits{Memory: 1 << 20}, true},
		{[]int{0}, Limits{Memory: 1<<20 + 1}, false},
		{[]int{0, 1}, Limits{Memory: 2 << 20}, true},
		{[]int{0}, Limits{HugePages: map[uint64]uint64{mega: 2 * mega}}, true},
		{[]int{1}, Limits{HugePages: map[uint64]uint64{mega: 2 * mega}}, false},
		{[]int{0, 1}, Limits{HugePages: map[uint64]uint64{mega: 3 * mega}}, true},
		{[]int{0, 1}, Limits{HugePages: map[uint64]uint64{mega: mega, giga: giga}}, false},
		{[]int{2}, Limits{Memory: 1}, false}, // unknown to the kernel
	} {
		if got := root(dir).nodesHold(test.nodes, test.limits); got != test.want {
			t.Errorf("nodes %v hold %+v: %v", test.nodes, test.limits, got)
		}
	}
}

// TestCgroupNodes reads the nodes back: they are the CPUs' nodes.
func TestCgroupNodes(t *testing.T) {
	c := testCgroup(t)
	cpus, err := AllowedCPUs()
	must(t, err)
	hs, err := hierarchies()
	must(t, err)
	want := cpusetNodes(hs, Limits{CPUs: cpus[:1]})
	if want == "" {
		t.Skip("the nodes of this machine's CPUs have no memory, or cannot be granted")
	}
	create(t, c, Limits{CPUs: cpus[:1]})
	if got := file(t, c, "cpuset.mems"); got != want {
		t.Errorf("with CPU %d the cgroup has nodes %q, want %q", cpus[0], got, want)
	}
	if got := cpusetNodes(hs, Limits{CPUs: cpus[:1], Memory: 1 << 60}); got != "" {
		t.Errorf("nodes %q hold any memory", got)
	}
}

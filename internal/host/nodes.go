// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/cpulist"
)

// MemoryNodes are the NUMA nodes of the CPUs, ascending. It is empty if the kernel
// does not report them, or if one has no memory.
func MemoryNodes(cpus []int) []int { return root("/").memoryNodes(cpus) }

// AllMemoryNodes are the NUMA nodes that have memory, ascending.
func AllMemoryNodes() []int { return root("/").allMemoryNodes() }

func (r root) allMemoryNodes() []int {
	nodes, err := cpulist.Parse(r.line("sys/devices/system/node/has_memory")) // written as a list of CPUs is
	if err != nil {
		return nil
	}
	return nodes
}

func (r root) memoryNodes(cpus []int) []int {
	const dir = "sys/devices/system/node"
	withMemory := r.allMemoryNodes()
	entries, err := os.ReadDir(filepath.Join(string(r), dir))
	if err != nil {
		return nil
	}
	var nodes []int
	for _, e := range entries {
		number, isNode := strings.CutPrefix(e.Name(), "node")
		node, err := strconv.Atoi(number)
		if !isNode || err != nil {
			continue
		}
		own, err := cpulist.Parse(r.line(filepath.Join(dir, e.Name(), "cpulist")))
		if err != nil {
			return nil
		}
		if !slices.ContainsFunc(cpus, func(cpu int) bool { return slices.Contains(own, cpu) }) {
			continue
		}
		if !slices.Contains(withMemory, node) {
			return nil
		}
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

// CommonMemoryNode is the only NUMA node with memory of all these CPUs, on a host that
// has several; nil: there is none, or a placement would make no difference.
func CommonMemoryNode(cpus []int) *int { return root("/").commonMemoryNode(cpus) }

func (r root) commonMemoryNode(cpus []int) *int {
	nodes := r.memoryNodes(cpus)
	if len(nodes) != 1 || len(r.allMemoryNodes()) < 2 {
		return nil
	}
	return &nodes[0]
}

// preferred is MPOL_PREFERRED of set_mempolicy(2).
const preferred = 1

// PreferNode calls f on a thread of its own, for which the kernel takes memory from a
// NUMA node as long as that has any; nil: from any. A kernel or filter that refuses
// the preference makes memory slower, and nothing fail.
func PreferNode(node *int, f func() error) error {
	if node == nil {
		return f()
	}
	return onOwnThread(func() error {
		const word = 64
		mask := make([]uint64, *node/word+1)
		mask[*node/word] = 1 << (*node % word)
		_, _, _ = unix.RawSyscall(unix.SYS_SET_MEMPOLICY, preferred, uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*word+1))
		return f()
	})
}

// grantableNodes are the nodes that cgroups below the root can get; none if there
// is no cpuset controller.
func grantableNodes(hs []hierarchy) []int {
	return cpusetList(hs, "cpuset.mems.effective", "cpuset.effective_mems")
}

// cpusetNodes formats the nodes of the limits' CPUs for cpuset.mems. It is empty
// (no change) if a node cannot be granted, or if together they have less than the
// limits allow: the plan counts the whole host's memory and huge pages.
func cpusetNodes(hs []hierarchy, l Limits) string {
	nodes, granted := MemoryNodes(l.CPUs), grantableNodes(hs)
	if slices.ContainsFunc(nodes, func(node int) bool { return !slices.Contains(granted, node) }) {
		return ""
	}
	if !root("/").nodesHold(nodes, l) {
		return ""
	}
	return cpulist.Format(nodes)
}

// nodesHold reports whether the nodes together have the memory, and the huge pages
// of each size, that the limits allow. It ignores what others already use.
func (r root) nodesHold(nodes []int, l Limits) bool {
	var memory uint64
	huge := map[uint64]uint64{}
	for _, node := range nodes {
		dir := fmt.Sprintf("sys/devices/system/node/node%d", node)
		kib := strings.TrimSuffix(r.field(filepath.Join(dir, "meminfo"), fmt.Sprintf("Node %d MemTotal", node), ":"), " kB")
		n, _ := strconv.ParseUint(kib, 10, 54) // unreported counts as 0
		memory += n << 10
		for size := range l.HugePages {
			pages, _ := strconv.ParseUint(r.line(filepath.Join(dir, fmt.Sprintf("hugepages/hugepages-%dkB/nr_hugepages", size>>10))), 10, 32)
			huge[size] += pages * size
		}
	}
	for size, limit := range l.HugePages {
		if limit > huge[size] {
			return false
		}
	}
	return l.Memory <= memory
}

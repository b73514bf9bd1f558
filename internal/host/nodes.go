// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MemoryNodes are the NUMA nodes of the CPUs, ascending; none where the kernel
// does not say, or where one of these nodes has no memory.
func MemoryNodes(cpus []int) []int { return root("/").memoryNodes(cpus) }

// AllMemoryNodes are the NUMA nodes that have memory, ascending.
func AllMemoryNodes() []int { return root("/").allMemoryNodes() }

func (r root) allMemoryNodes() []int {
	nodes, err := ParseCPUs(r.line("sys/devices/system/node/has_memory")) // written as a list of CPUs is
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
		own, err := ParseCPUs(r.line(filepath.Join(dir, e.Name(), "cpulist")))
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

// grantableNodes are those that cgroups below the root may be given; none where
// there is no cpuset controller.
func grantableNodes(hs []hierarchy) []int {
	return cpusetList(hs, "cpuset.mems.effective", "cpuset.effective_mems")
}

// cpusetNodes are the nodes of CPUs as cpuset.mems has them. It is empty, which
// leaves them as they are, where these cannot all be granted.
func cpusetNodes(hs []hierarchy, cpus []int) string {
	nodes, granted := MemoryNodes(cpus), grantableNodes(hs)
	if slices.ContainsFunc(nodes, func(node int) bool { return !slices.Contains(granted, node) }) {
		return ""
	}
	return FormatCPUs(nodes)
}

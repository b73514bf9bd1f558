// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// HeldMemory is the memory of the group's processes that the kernel cannot reclaim
// without swapping, in bytes; 0 if nothing accounts it. The page cache is not part of
// it: MemAvailable already counts that.
func (c Cgroup) HeldMemory() uint64 {
	hs, err := hierarchies()
	if err != nil {
		return 0
	}
	for _, h := range hs {
		if !h.v2 && !h.has("memory") {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(h.mount, c.Path, "memory.stat")); err == nil {
			return heldMemory(text)
		}
	}
	return 0
}

// heldMemory sums memory.stat of v2 (anon, shmem) or, with what is below the group, of
// v1 (total_rss, total_shmem).
func heldMemory(stat []byte) uint64 {
	sum := uint64(0)
	for lines := bufio.NewScanner(bytes.NewReader(stat)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), " ")
		switch key {
		case "anon", "shmem", "total_rss", "total_shmem":
			n, err := strconv.ParseUint(value, 10, 64)
			if err == nil && !(key == "shmem" && bytes.Contains(stat, []byte("\ntotal_shmem "))) {
				sum += n
			}
		}
	}
	return sum
}

// HeldHugePages is the hugetlb memory of one page size that the group uses, in bytes;
// not known if no hierarchy accounts it for the group.
func (c Cgroup) HeldHugePages(size uint64) (held uint64, known bool) {
	hs, err := hierarchies()
	if err != nil {
		return 0, false
	}
	for _, h := range hs {
		file := "hugetlb." + pageSizeName(size) + ".usage_in_bytes"
		if h.v2 {
			file = "hugetlb." + pageSizeName(size) + ".current"
		}
		text, err := os.ReadFile(filepath.Join(h.mount, c.Path, file))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			held, known = held+n, true
		}
	}
	return held, known
}

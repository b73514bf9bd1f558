// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/inventory"
)

// MemoryAvailable is how many bytes programs can still use without swapping, as the
// kernel estimates it: MemAvailable of /proc/meminfo.
func MemoryAvailable() (uint64, error) {
	_, available, err := root("/").memory()
	return available, err
}

// memory is MemTotal and MemAvailable in bytes.
func (r root) memory() (total, available uint64, err error) {
	for key, value := range map[string]*uint64{"MemTotal": &total, "MemAvailable": &available} {
		kib := strings.TrimSuffix(r.field("proc/meminfo", key, ":"), " kB")
		n, err := strconv.ParseUint(kib, 10, 54)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/meminfo: %s: %w", key, err)
		}
		*value = n << 10
	}
	return total, available, nil
}

// hugePages counts the hugetlb pages of each size, ascending by size; none if the
// kernel has no hugetlb.
func (r root) hugePages() []inventory.HugePg {
	const dir = "sys/kernel/mm/hugepages"
	entries, err := os.ReadDir(filepath.Join(string(r), dir))
	if err != nil {
		return nil
	}
	var pages []inventory.HugePg
	for _, e := range entries {
		size, isSize := strings.CutPrefix(e.Name(), "hugepages-")
		kib, err := strconv.ParseUint(strings.TrimSuffix(size, "kB"), 10, 54)
		if !isSize || err != nil {
			continue
		}
		total, err1 := strconv.Atoi(r.line(filepath.Join(dir, e.Name(), "nr_hugepages")))
		free, err2 := strconv.Atoi(r.line(filepath.Join(dir, e.Name(), "free_hugepages")))
		// Mappings that are not touched yet have reserved these; they are still counted as free.
		reserved, _ := strconv.Atoi(r.line(filepath.Join(dir, e.Name(), "resv_hugepages")))
		if err1 == nil && err2 == nil {
			pages = append(pages, inventory.HugePg{Size: kib << 10, Total: total, Free: max(0, free-reserved)})
		}
	}
	slices.SortFunc(pages, func(a, b inventory.HugePg) int {
		if a.Size < b.Size {
			return -1
		}
		return 1
	})
	return pages
}

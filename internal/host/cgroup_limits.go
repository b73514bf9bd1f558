// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checkControllers returns an *Unsupported error for the first limit that no
// mounted hierarchy can enforce.
func checkControllers(l Limits, hs []hierarchy) error {
	wanted := []struct {
		controller string
		asked      bool
	}{
		{"cpuset", len(l.CPUs) > 0},
		{"cpu", l.Share > 0},
		{"memory", l.Memory > 0},
		{"pids", l.Pids > 0},
		{hugetlb, len(l.HugePages) > 0},
	}
	for _, w := range wanted {
		if !w.asked || slices.ContainsFunc(hs, func(h hierarchy) bool { return h.has(w.controller) }) {
			continue
		}
		return &Unsupported{
			What: w.controller + " limit",
			Why:  "no mounted cgroup hierarchy has the controller " + w.controller,
			Fix:  controllerFix(w.controller, hs),
		}
	}
	return nil
}

func controllerFix(controller string, hs []hierarchy) string {
	if slices.ContainsFunc(hs, func(h hierarchy) bool { return !h.v2 }) {
		dir := "/sys/fs/cgroup/" + controller
		return fmt.Sprintf("mkdir -p %s && mount -t cgroup -o %s cgroup %s", dir, controller, dir)
	}
	if controller == "memory" {
		return "boot with cgroup_enable=memory"
	}
	return "a kernel with the " + controller + " cgroup controller; in a container, delegate it"
}

// onHybrid finds the v2 hierarchy of a controller on a host that also has v1, if
// the controller is not mounted as v1.
func onHybrid(hs []hierarchy, controller string) (hierarchy, bool) {
	var unified hierarchy
	v1 := false
	for _, h := range hs {
		v1 = v1 || !h.v2
		if h.v2 && h.has(controller) {
			unified = h
		}
	}
	return unified, v1 && unified.mount != ""
}

// limitHugetlb makes the cgroup in the v2 hierarchy at root, enables hugetlb down
// to it and sets the limits. It stays enabled: others may now depend on it.
func limitHugetlb(root, path string, limits map[uint64]uint64) error {
	dir := filepath.Join(root, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, parent := range ancestors(root, path) {
		if err := writeExisting(filepath.Join(parent, "cgroup.subtree_control"), []byte("+hugetlb")); err != nil {
			return fmt.Errorf("enable hugetlb below %s (no process may be directly in it): %w", parent, err)
		}
	}
	for size, limit := range limits {
		value := []byte(strconv.FormatUint(limit, 10))
		name := filepath.Join(dir, "hugetlb."+pageSizeName(size))
		if err := writeExisting(name+".max", value); err != nil {
			return fmt.Errorf("limit huge pages of %d bytes: %w", size, err)
		}
		// Limit reservations (mmap) too, if the kernel counts them (5.7 on).
		if err := writeExisting(name+".rsvd.max", value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("limit huge page reservations of %d bytes: %w", size, err)
		}
	}
	return nil
}

// ancestors lists root and each directory between it and path, without path itself.
func ancestors(root, path string) []string {
	dirs := []string{root}
	elements := strings.Split(strings.Trim(path, "/"), "/")
	for _, element := range elements[:len(elements)-1] {
		dirs = append(dirs, filepath.Join(dirs[len(dirs)-1], element))
	}
	return dirs
}

// swapAccounted reports whether a combined memory and swap limit can be set. A v1
// kernel booted with swapaccount=0 lacks it; v2 always has it.
func swapAccounted() bool {
	hs, err := hierarchies()
	if err != nil {
		return false
	}
	for _, h := range hs {
		if !h.v2 && h.has("memory") {
			_, err := os.Stat(filepath.Join(h.mount, "memory.memsw.limit_in_bytes"))
			return err == nil
		}
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
)

// CheckHugePages checks that a container's process is in the given cgroup, with the
// function's huge page limit, if there is one. An engine that ignores the hierarchy
// with the hugetlb controller leaves the process outside: Docker does so if cgroup v1
// and v2 are mixed, or if systemd places its containers.
func CheckHugePages(s runtime.Spec, within host.Cgroup, pid int) error {
	if len(s.Function.HugePages) == 0 {
		return nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil // it has ended already
	}
	if strings.HasPrefix(hugetlbPath(string(text)), within.Path+"/") {
		return nil
	}
	if _, err := host.Identify(pid); err != nil {
		return nil // it has ended meanwhile, and so is in the root of every hierarchy
	}
	return &host.Unsupported{
		What: "hugepages limit with runtime " + string(s.Function.Runtime),
		Why:  "the container engine does not use this host's hugetlb controller for it",
		Fix:  "boot with systemd.unified_cgroup_hierarchy=1 (for docker: with native.cgroupdriver=cgroupfs), or use runtime runc",
	}
}

// hugetlbPath is the process's cgroup in the hierarchy with the hugetlb
// controller, from its /proc/PID/cgroup (cgroups(7)).
func hugetlbPath(text string) string {
	unified := ""
	for _, line := range strings.Split(text, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		if slices.Contains(strings.Split(parts[1], ","), "hugetlb") {
			return parts[2]
		}
		if parts[0] == "0" {
			unified = parts[2]
		}
	}
	return unified
}

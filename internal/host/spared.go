// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/cpulist"
)

// systemdsOwn is the control group of systemd itself: where it exists, systemd has
// moved every program out of the root group.
const systemdsOwn = "init.scope"

// sparedCPUs lists the CPUs that no program outside of Drayage's own control groups
// may use, as `dray doctor --fix --apply` leaves them. None unless systemd manages a
// cgroup v2 hierarchy.
func sparedCPUs(hs []hierarchy) []int {
	i := slices.IndexFunc(hs, func(h hierarchy) bool { return h.v2 && h.has("cpuset") })
	if i < 0 {
		return nil
	}
	root := root(hs[i].mount)
	if _, err := os.Stat(filepath.Join(string(root), systemdsOwn)); err != nil {
		return nil
	}
	entries, err := os.ReadDir(string(root))
	if err != nil {
		return nil
	}
	free := cpusetOf(hs[i : i+1])
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix("/"+e.Name(), ownPrefix) || root.field(filepath.Join(e.Name(), "cgroup.events"), "populated", " ") == "0" {
			continue
		}
		used, err := cpulist.Parse(root.line(filepath.Join(e.Name(), "cpuset.cpus.effective")))
		if err != nil || len(used) == 0 { // it has no cpuset: it may use all
			return nil
		}
		free = cpulist.Without(free, used)
	}
	return free
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"maps"
	"slices"
	"testing"
)

// CPUs are spared if no group of systemd may use them. Drayage's own groups, and those without
// programs, do not count.
func TestSparedCPUs(t *testing.T) {
	files := map[string]string{
		"cpuset.cpus.effective":                  "0-3\n",
		"init.scope/cpuset.cpus.effective":       "0-1\n",
		"system.slice/cpuset.cpus.effective":     "0-1\n",
		"dray/cpuset.cpus.effective":             "0-3\n",
		"dray-test-1/cpuset.cpus.effective":      "0-3\n",
		"dev-mqueue.mount/cgroup.events":         "populated 0\nfrozen 0\n",
		"dev-mqueue.mount/cpuset.cpus.effective": "0-3\n",
	}
	for name, test := range map[string]struct {
		set, drop string
		want      []int
	}{
		"kept free":              {want: []int{2, 3}},
		"another group":          {set: "kubepods.slice/cpuset.cpus.effective", want: nil},
		"a group without cpuset": {drop: "system.slice/cpuset.cpus.effective", set: "system.slice/cgroup.procs", want: nil},
		"a host without systemd": {drop: "init.scope/cpuset.cpus.effective", want: nil},
		"a group with programs":  {set: "docker/cpuset.cpus.effective", want: nil},
		"no cpuset in any group": {drop: "cpuset.cpus.effective", want: nil},
	} {
		own := maps.Clone(files)
		delete(own, test.drop)
		if test.set != "" {
			own[test.set] = "0-3\n"
		}
		hs := []hierarchy{{mount: "/nowhere", controllers: []string{"cpuset"}}, {mount: string(tree(t, own)), v2: true, controllers: []string{"cpu", "cpuset"}}}
		if got := sparedCPUs(hs); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if got := sparedCPUs(hs[:1]); got != nil {
			t.Errorf("%s, without v2: %v", name, got)
		}
	}
}

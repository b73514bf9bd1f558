// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestHidden(t *testing.T) {
	for path, want := range map[string]string{
		"/root/dray/bin/dray-vnf": "/root", "/home/a/bin/dray-vnf": "/home", "/usr/local/bin/dray-vnf": "", "/var/tmp/dray/bin/dray-vnf": "/var/tmp", "/rootless/dray-vnf": "",
	} {
		if got := Hidden(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestScriptKnowsHiddenFolders: scripts/experiments.sh copies the programs of a clone that containers do not see.
func TestScriptKnowsHiddenFolders(t *testing.T) {
	script, err := os.ReadFile("../../../scripts/experiments.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Concat(PrivateDirs, ScratchDirs) {
		if !strings.Contains(string(script), dir+"/*") {
			t.Errorf("it does not name %s", dir)
		}
	}
}

// TestHostPages: a machine's huge pages are its own; the host need not be able to
// limit any.
func TestHostPages(t *testing.T) {
	for runtime, limited := range map[chain.RuntimeName]bool{chain.RuntimeVM: false, chain.RuntimeProcess: true, chain.RuntimeRunc: true, chain.RuntimeDocker: true} {
		s := Spec{
			Function: chain.Function{Runtime: runtime, Memory: 1 << 30, HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}}},
			Cgroup:   host.Cgroup{Path: "/dray/test/f"},
		}
		l := s.Limits()
		if (l.HugePages[2<<20] == 64<<20) != limited || l.Memory != 1<<30 {
			t.Errorf("%s: limits %+v", runtime, l)
		}
		if got := s.CgroupResources(); slices.Contains(got, host.HugetlbResource()) != limited || !slices.Contains(got, host.CgroupResource(s.Cgroup)) {
			t.Errorf("%s: resources %+v", runtime, got)
		}
	}
}

// A function that shares its only CPU weighs its share; one with several has them for itself.
func TestShareIsTheWeight(t *testing.T) {
	half := &chain.Compute{Share: 0.5}
	for _, test := range []struct {
		compute *chain.Compute
		cpus    []int
		want    float64
	}{{half, []int{1}, 0.5}, {half, []int{1, 2}, 1}, {nil, []int{1}, 0}} {
		if got := (Spec{Function: chain.Function{Compute: test.compute}, CPUs: test.cpus}).Limits().Share; got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

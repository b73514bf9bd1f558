// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"github.com/drayage/dray/test/testenv"
)

// TestOnCgroup2 runs the tests above with only cgroup2 mounted, on a host that also
// has v1. Controllers that v1 holds are missing, and so are their limits.
func TestOnCgroup2(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "unshare")
	if mode := describeMode(t); mode == "v2" {
		t.Skip("all tests run on cgroup2 alone here")
	}
	const script = `mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 77; exec "$0" -test.v -test.run 'Cgroup|Place' -test.skip '^TestOnCgroup2$'`
	out, err := exec.Command("unshare", "--mount", "sh", "-c", script, os.Args[0]).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		t.Skipf("cgroup2 cannot be mounted: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestCgroupRemovesTreeAndStoppedProcesses", "TestCgroupThawsBeforeItRemoves", "TestCgroupOfProcess", "TestCgroupV1Root", "TestPlaceIsNetnsAndCgroup"} {
		if !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("%s did not pass:\n%s", name, out)
		}
	}
}

func describeMode(t testing.TB) string {
	t.Helper()
	hs, err := hierarchies()
	must(t, err)
	return cgroupMode(hs)
}

func TestCheckControllers(t *testing.T) {
	v1 := []hierarchy{{mount: "/c/cpuset", controllers: []string{"rw", "cpuset"}}, {mount: "/c/memory", controllers: []string{"memory"}}}
	v2 := []hierarchy{{mount: "/c", v2: true, controllers: []string{"memory", "pids"}}}
	huge := Limits{HugePages: map[uint64]uint64{1 << 30: 0}}
	for _, test := range []struct {
		name   string
		limits Limits
		on     []hierarchy
		fix    string // empty: supported
	}{
		{"v1 with", Limits{CPUs: []int{0}, Memory: 1}, v1, ""},
		{"v1 without", Limits{Pids: 1}, v1, "mount -t cgroup -o pids cgroup /sys/fs/cgroup/pids"},
		{"v1 hugetlb", huge, v1, "mount -t cgroup -o hugetlb cgroup /sys/fs/cgroup/hugetlb"},
		{"v2 with", Limits{Memory: 1, Pids: 1}, v2, ""},
		{"v2 without weights", Limits{Share: 0.5}, v2, "cpu cgroup controller"},
		{"v2 without", Limits{CPUs: []int{0}}, v2, "cpuset cgroup controller"},
		{"v2 memory off", Limits{Memory: 1}, v2[:0], "cgroup_enable=memory"},
	} {
		err := checkControllers(test.limits, test.on)
		var u *Unsupported
		switch {
		case test.fix == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.fix != "" && (!errors.As(err, &u) || !strings.Contains(u.Fix, test.fix)):
			t.Errorf("%s: %v does not name %q", test.name, err, test.fix)
		}
	}
}

// TestHugetlbOnV2 runs on plain files instead of a cgroup2 mount.
func TestHugetlbOnV2(t *testing.T) {
	root := t.TempDir()
	dirs := ancestors(root, "/dray/chain/du")
	if want := []string{root, root + "/dray", root + "/dray/chain"}; !slices.Equal(dirs, want) {
		t.Fatalf("controllers are to be enabled in %v, want %v", dirs, want)
	}
	leaf := filepath.Join(root, "dray/chain/du")
	must(t, os.MkdirAll(leaf, 0o755))
	for _, dir := range dirs {
		must(t, os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), nil, 0o644))
	}
	limits := map[uint64]uint64{2 << 20: 8 << 20}
	if err := limitHugetlb(root, "/dray/chain/du", limits); err == nil {
		t.Error("no error although the kernel made no hugetlb files")
	}
	for _, name := range []string{"hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"} {
		must(t, os.WriteFile(filepath.Join(leaf, name), nil, 0o644))
	}
	must(t, limitHugetlb(root, "/dray/chain/du", limits))
	for _, f := range []struct{ path, want string }{
		{root + "/cgroup.subtree_control", "+hugetlb"},
		{root + "/dray/cgroup.subtree_control", "+hugetlb"},
		{root + "/dray/chain/cgroup.subtree_control", "+hugetlb"},
		{leaf + "/hugetlb.2MB.max", "8388608"},
		{leaf + "/hugetlb.2MB.rsvd.max", "8388608"},
	} {
		if b, _ := os.ReadFile(f.path); !strings.HasSuffix(string(b), f.want) {
			t.Errorf("%s holds %q, want %q", f.path, b, f.want)
		}
	}
	if _, err := os.Stat(leaf + "/cgroup.subtree_control"); err == nil {
		t.Error("the limited cgroup itself passes the controller on")
	}
}

func TestHierarchies(t *testing.T) {
	hs := hierarchiesFrom([]*mountinfo.Info{
		{Mountpoint: "/nowhere/cpu", FSType: "cgroup", VFSOptions: "rw,cpu,cpuacct", Minor: 1},
		{Mountpoint: "/elsewhere/cpu", FSType: "cgroup", VFSOptions: "rw,cpu,cpuacct", Minor: 1},
		{Mountpoint: "/nowhere/systemd", FSType: "cgroup", VFSOptions: "rw,xattr,name=systemd", Minor: 2},
		{Mountpoint: "/nowhere/unified", FSType: "cgroup2", Minor: 3},
	})
	if len(hs) != 3 || !hs[0].has("cpuacct") || hs[0].v2 || !hs[2].v2 {
		t.Fatalf("%+v", hs)
	}
	c := cgroupIn(map[string]string{"cpu": "/a", "cpuacct": "/a", "name=systemd": "/b", "": "/c"}, hs)
	if want := []string{"/nowhere/cpu/a", "/nowhere/systemd/b", "/nowhere/unified/c"}; !slices.Equal(c.Foreign, want) {
		t.Errorf("%v, want %v", c.Foreign, want)
	}
}

func TestPageSizeName(t *testing.T) {
	for size, want := range map[uint64]string{64 << 10: "64KB", 2 << 20: "2MB", 1 << 30: "1GB"} {
		if got := pageSizeName(size); got != want {
			t.Errorf("%d is %s, want %s", size, got, want)
		}
	}
}

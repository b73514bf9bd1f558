// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/testenv"
)

func testCgroup(t testing.TB) Cgroup {
	t.Helper()
	testenv.Root(t)
	c := Cgroup{Path: "/dray/" + unique(t)}
	t.Cleanup(func() {
		if err := removeCgroup(context.Background(), c.Path); err != nil {
			t.Error(err)
		}
		if dirs, err := c.dirs(); err != nil || len(dirs) > 0 {
			t.Errorf("left behind: %v (%v)", dirs, err)
		}
	})
	return c
}

// start starts a shell in the cgroup and reaps it at the end of the test.
func start(t testing.TB, p Place, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	must(t, p.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// file reads the first of the named files that any hierarchy has for c.
func file(t testing.TB, c Cgroup, names ...string) string {
	t.Helper()
	dirs, err := c.dirs()
	must(t, err)
	for _, dir := range dirs {
		for _, name := range names {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return strings.TrimSpace(string(b))
			}
		}
	}
	t.Fatalf("cgroup %s has none of %v in %v", c.Path, names, dirs)
	return ""
}

func TestCgroupLimits(t *testing.T) {
	c := testCgroup(t)
	cpus, err := AllowedCPUs()
	must(t, err)
	cpu := cpus[len(cpus)-1]
	must(t, c.Create(Limits{CPUs: []int{cpu}, Memory: 64 << 20, Pids: 37}))
	run := c.Child("run")
	must(t, run.Create(Limits{}))

	want := strconv.Itoa(cpu)
	for _, in := range []Cgroup{c, run} {
		if got := file(t, in, "cpuset.effective_cpus", "cpuset.cpus.effective", "cpuset.cpus"); got != want {
			t.Errorf("%s may use CPUs %q, want %q", in.Path, got, want)
		}
	}
	if got := file(t, run, "cpuset.effective_mems", "cpuset.mems.effective", "cpuset.mems"); got == "" {
		t.Error("child has no memory nodes: no process can enter it")
	}
	if got := file(t, c, "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(64<<20) {
		t.Errorf("memory limit %s", got)
	}
	if got := file(t, c, "pids.max"); got != "37" {
		t.Errorf("pids limit %s", got)
	}

	var out bytes.Buffer
	cmd := exec.Command("sh", "-c", "grep Cpus_allowed_list /proc/self/status; cat /proc/self/cgroup")
	cmd.Stdout = &out
	must(t, Place{Cgroup: run}.Start(cmd))
	must(t, cmd.Wait())
	if !strings.Contains(out.String(), "Cpus_allowed_list:\t"+want+"\n") {
		t.Errorf("a process in the cgroup may use other CPUs than %s:\n%s", want, out.String())
	}
	dirs, err := run.dirs()
	must(t, err)
	if n := strings.Count(out.String(), run.Path+"\n"); n != len(dirs) {
		t.Errorf("born in %d hierarchies, the cgroup exists in %d:\n%s", n, len(dirs), out.String())
	}
}

func TestCgroupMemoryLimitKills(t *testing.T) {
	c := testCgroup(t)
	must(t, c.Create(Limits{Memory: 32 << 20}))
	// dd holds its block in memory.
	cmd := exec.Command("dd", "if=/dev/zero", "of=/dev/null", "bs=128M", "count=1")
	must(t, Place{Cgroup: c}.Start(cmd))
	if err := cmd.Wait(); err == nil {
		t.Error("a process used 128 MB under a limit of 32 MB")
	}
}

func TestCgroupHugePages(t *testing.T) {
	c := testCgroup(t)
	hs, err := hierarchies()
	must(t, err)
	err = c.Create(Limits{HugePages: map[uint64]uint64{2 << 20: 4 << 20}})
	if !slices.ContainsFunc(hs, func(h hierarchy) bool { return h.has("hugetlb") }) {
		if !errors.Is(err, ErrUnsupported) {
			t.Fatalf("no hugetlb controller, but: %v", err)
		}
		return
	}
	must(t, err)
	if got := file(t, c, "hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes"); got != strconv.Itoa(4<<20) {
		t.Errorf("limit is %s", got)
	}
}

// TestCgroupKillsForkBomb: processes that multiply are killed, and after that
// the cgroup is as usable as before.
func TestCgroupKillsForkBomb(t *testing.T) {
	c := testCgroup(t)
	must(t, c.Create(Limits{Pids: 200}))
	run := c.Child("run")
	must(t, run.Create(Limits{}))
	start(t, Place{Cgroup: run}, "f() { f | f & f; }; f 2>/dev/null")
	waitFor(t, "the bomb to spread", func() bool {
		pids, err := run.Processes()
		return err == nil && len(pids) > 20
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	must(t, run.Kill(ctx))
	if pids, err := run.Processes(); err != nil || len(pids) > 0 {
		t.Fatalf("processes %v live (%v)", pids, err)
	}
	// Zombies count against the limit until init has reaped them.
	waitFor(t, "a program to run in the cgroup after Kill", func() bool {
		cmd := exec.Command("sh", "-c", "/bin/true; exit $?")
		return Place{Cgroup: run}.Start(cmd) == nil && cmd.Wait() == nil
	})
}

func TestCgroupRemovesTreeAndStoppedProcesses(t *testing.T) {
	c := testCgroup(t)
	deep := c.Child("run").Child("sub").Child("deeper") // as docker and runc nest them
	must(t, deep.Create(Limits{}))
	cmd := start(t, Place{Cgroup: deep}, "kill -STOP $$; sleep 1000")
	zombie := start(t, Place{Cgroup: c.Child("run")}, "exit 0") // not reaped until the test ends
	id, err := Identify(cmd.Process.Pid)
	must(t, err)
	if !id.Alive() {
		t.Fatal("not alive before")
	}
	must(t, removeCgroup(context.Background(), c.Path))
	if id.Alive() {
		t.Error("survived the removal of its cgroup")
	}
	if _, err := Identify(zombie.Process.Pid); err == nil {
		t.Error("a zombie counts as running")
	}
	must(t, removeCgroup(context.Background(), c.Path)) // again: nothing to do
}

func TestCgroupThawsBeforeItRemoves(t *testing.T) {
	c := testCgroup(t)
	must(t, c.Create(Limits{}))
	start(t, Place{Cgroup: c}, "sleep 1000")
	dirs, err := c.dirs()
	must(t, err)
	for _, dir := range dirs {
		for name, value := range map[string]string{"freezer.state": "FROZEN", "cgroup.freeze": "1"} {
			_ = writeExisting(filepath.Join(dir, name), []byte(value))
		}
	}
	must(t, removeCgroup(context.Background(), c.Path))
}

func TestCgroupRefusesForeignPaths(t *testing.T) {
	for _, p := range []string{"", "/", "/system.slice", "/dray/../x", "/dray/", "dray/x", "/dray"} {
		if err := removeCgroup(context.Background(), p); err == nil {
			t.Errorf("removed %q", p)
		}
	}
	if err := (Cgroup{Path: "/user.slice/x"}).Create(Limits{}); err == nil {
		t.Error("created /user.slice/x")
	}
}

func TestCgroupOfProcess(t *testing.T) {
	c := testCgroup(t)
	must(t, c.Create(Limits{}))
	cmd := start(t, Place{Cgroup: c}, "sleep 1000")
	of, err := CgroupOf(cmd.Process.Pid)
	must(t, err)
	if of.Path != c.Path {
		t.Errorf("in %q, want %q", of.Path, c.Path)
	}
	// Whoever enters that cgroup ends up where the process is.
	second := start(t, Place{Cgroup: of}, "sleep 1000")
	pids, err := c.Processes()
	must(t, err)
	for _, pid := range []int{cmd.Process.Pid, second.Process.Pid} {
		if !slices.Contains(pids, pid) {
			t.Errorf("process %d is not among %v", pid, pids)
		}
	}
}

func TestPlaceRefuses(t *testing.T) {
	testenv.Root(t)
	cmd := exec.Command("true")
	if err := (Place{Cgroup: Cgroup{Path: "/dray/" + unique(t)}}).Start(cmd); err == nil {
		t.Error("started in a cgroup that does not exist")
	}
	cmd = exec.Command("true")
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := (Place{}).Start(cmd); err == nil {
		t.Error("accepted Pdeathsig")
	}
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

// TestHugetlbOnV2 runs on plain files in the place of a cgroup2 mount.
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
		t.Error("the limited cgroup itself hands the controller on")
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

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for", what)
		}
	}
}

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

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
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

// create makes the cgroup; a limit that this kernel cannot enforce skips the test.
func create(t testing.TB, c Cgroup, l Limits) {
	t.Helper()
	err := c.Create(l)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	must(t, err)
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
	create(t, c, Limits{CPUs: []int{cpu}, Memory: 64 << 20, Pids: 37})
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
	create(t, c, Limits{Memory: 32 << 20})
	// dd holds its block in memory.
	cmd := exec.Command("dd", "if=/dev/zero", "of=/dev/null", "bs=128M", "count=1")
	must(t, Place{Cgroup: c}.Start(cmd))
	if err := cmd.Wait(); err == nil {
		t.Error("a process used 128 MB under a limit of 32 MB")
	}
}

func TestCgroupHugePages(t *testing.T) {
	c := testCgroup(t)
	// If only v2 is mounted, a hidden v1 hierarchy may hold the controller, and
	// give it back at any time.
	canLimit := func() bool {
		hs, err := hierarchies()
		must(t, err)
		state, err := kernelController(hugetlb)
		return v1Root(hs) != "" && err == nil && state.enabled && ProbeHierarchyMount(hugetlb) == nil ||
			slices.ContainsFunc(hs, func(h hierarchy) bool { return h.has(hugetlb) })
	}
	before := canLimit()
	err := c.Create(Limits{HugePages: map[uint64]uint64{2 << 20: 4 << 20}})
	if errors.Is(err, ErrUnsupported) && !(before && canLimit()) {
		t.Skip(err)
	}
	must(t, err)
	if got := file(t, c, "hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes"); got != strconv.Itoa(4<<20) {
		t.Errorf("limit is %s", got)
	}
}

// TestCgroupKillsForkBomb: Kill kills a fork bomb, and the cgroup stays as usable
// as before.
func TestCgroupKillsForkBomb(t *testing.T) {
	testenv.Program(t, "perl")
	c := testCgroup(t)
	create(t, c, Limits{Pids: 200})
	run := c.Child("run")
	must(t, run.Create(Limits{}))
	// A shell ends when it cannot fork; this does not.
	start(t, Place{Cgroup: run}, "exec perl -e 'while (1) { fork; select(undef, undef, undef, 0.01) }'")
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
	// Zombies count against the limit until init reaps them.
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
	tools := c.Child("tools")
	must(t, tools.Create(Limits{}))
	zombie := start(t, Place{Cgroup: tools}, "exit 0") // not reaped until the test ends
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
		// This process's forking thread may still be ending there: if frozen, it
		// would block all others.
		waitFor(t, "this process's threads to leave "+dir, func() bool {
			tasks, err := os.ReadFile(filepath.Join(dir, "tasks"))
			return isV2(dir) || err == nil && !slices.ContainsFunc(strings.Fields(string(tasks)), func(tid string) bool {
				_, err := os.Stat("/proc/self/task/" + tid)
				return err == nil
			})
		})
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
	// A process placed in that cgroup ends up with the other.
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

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out waiting for", what)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// ownMounts is set in the environment of a test with its own mount namespace.
const ownMounts = "DRAY_TEST_OWN_MOUNTS"

// TestHierarchyOfOwn runs the tests that mount and unmount hierarchies, if no other
// process sees the mounts. They use an unused controller.
func TestHierarchyOfOwn(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "unshare")
	if os.Getenv(ownMounts) == "" {
		unshared(t)
		return
	}
	h := unusedHierarchy(t)
	testenv.Kernel(t, ProbeItem("cgroup hierarchy of its own", ProbeHierarchyMount(h.controller)))
	t.Run("goes with its last group", h.testLifecycle)
	t.Run("stays while others have groups in it", h.testOthersGroup)
	t.Run("stays where another mounted it", h.testOthersMount)
	t.Run("its maker was killed", h.testKilled)
	t.Run("goes once the killed are reaped", h.testZombie)
	t.Run("many at once", h.testRace)
	t.Run("nobody but root can keep its lock", h.testLock)
}

// unshared runs the test again, in its own mount namespace and others.
func unshared(t *testing.T, namespaces ...string) {
	t.Helper()
	args := slices.Concat(namespaces, []string{"--mount", "--propagation", "private", os.Args[0], "-test.v", "-test.run", "^" + t.Name() + "$"})
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
}

// TestHierarchyInCgroupNamespace is a container user's view: the kernel refuses the
// mount, and Drayage says so before it tries.
func TestHierarchyInCgroupNamespace(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "unshare")
	if os.Getenv(ownMounts) == "" {
		unshared(t, "--cgroup")
		return
	}
	h := unusedHierarchy(t)
	waitFor(t, "the kernel to let go of a hierarchy that was unmounted", func() bool {
		c, err := kernelController(h.controller)
		return err == nil && !c.v1
	})
	var u *Unsupported
	if err := ProbeHierarchyMount(h.controller); !errors.As(err, &u) || !strings.Contains(u.Fix, "before the container starts") {
		t.Fatalf("probe: %v", err)
	}
	if err := mountOwn(t.TempDir(), h.controller); !errors.Is(err, unix.EPERM) {
		t.Errorf("the probe expects a refusal, the kernel says %v", err)
	}
	c := Cgroup{Path: "/dray/" + unique(t)}
	if err := c.createWith(h.controller, Limits{}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), u.Fix) {
		t.Errorf("create: %v", err)
	}
	h.wantGone(t)
}

// oneHierarchy is a controller, and Drayage's mount point for it.
type oneHierarchy struct{ controller, dir string }

func unusedHierarchy(t *testing.T) oneHierarchy {
	hs, err := hierarchies()
	must(t, err)
	root := v1Root(hs)
	if root == "" {
		t.Skip("this host has no v1 hierarchies")
	}
	for _, controller := range []string{"net_prio", "net_cls"} {
		mounted := slices.ContainsFunc(hs, func(h hierarchy) bool { return !h.v2 && h.has(controller) })
		if c, err := kernelController(controller); err == nil && c.enabled && !mounted {
			return oneHierarchy{controller, filepath.Join(root, controller)}
		}
	}
	t.Skip("this kernel has no controller that no hierarchy uses")
	return oneHierarchy{}
}

func (h oneHierarchy) mounted(t *testing.T) bool {
	t.Helper()
	hs, err := hierarchies()
	must(t, err)
	return slices.ContainsFunc(hs, func(other hierarchy) bool { return other.mount == h.dir })
}

// wantGone expects neither the mount nor its directory.
func (h oneHierarchy) wantGone(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(h.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left (mounted: %v, %v)", h.dir, h.mounted(t), err)
	}
}

// group makes a group and its hierarchy.
func (h oneHierarchy) group(t *testing.T) Cgroup {
	t.Helper()
	c := Cgroup{Path: "/dray/" + unique(t)}
	must(t, c.createWith(h.controller, Limits{}))
	if !isCgroup1(filepath.Join(h.dir, c.Path)) {
		t.Fatalf("%s%s is no cgroup", h.dir, c.Path)
	}
	return c
}

func isCgroup1(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP_SUPER_MAGIC
}

func (h oneHierarchy) testLifecycle(t *testing.T) {
	first, second := h.group(t), h.group(t)
	must(t, removeCgroup(context.Background(), first.Path))
	must(t, releaseHierarchy(h.controller))
	if !h.mounted(t) {
		t.Fatal("it is gone after the first of two groups")
	}
	must(t, removeCgroup(context.Background(), second.Path))
	h.wantGone(t)
	// A process that knew the hierarchy makes nothing in its place.
	later := Cgroup{Path: "/dray/" + unique(t)}
	must(t, later.Create(Limits{}))
	h.wantGone(t)
	must(t, removeCgroup(context.Background(), later.Path))
}

func (h oneHierarchy) testOthersGroup(t *testing.T) {
	c := h.group(t)
	other := filepath.Join(h.dir, "other")
	must(t, os.Mkdir(other, 0o755))
	must(t, removeCgroup(context.Background(), c.Path))
	if !h.mounted(t) {
		t.Fatal("it is gone while another group is in it")
	}
	must(t, unix.Rmdir(other))
	must(t, Removers()[KindHierarchy](context.Background(), HugetlbResource()))
	if !h.mounted(t) {
		t.Error("the removal of another hierarchy has removed it")
	}
	must(t, releaseHierarchy(h.controller))
	h.wantGone(t)
}

func (h oneHierarchy) testOthersMount(t *testing.T) {
	must(t, os.Mkdir(h.dir, 0o755))
	must(t, unix.Mount("cgroup", h.dir, "cgroup", 0, h.controller))
	c := h.group(t)
	must(t, removeCgroup(context.Background(), c.Path))
	must(t, releaseHierarchy(h.controller))
	if !h.mounted(t) {
		t.Error("another's hierarchy is unmounted")
	}
	must(t, unix.Unmount(h.dir, 0))
	must(t, unix.Rmdir(h.dir))
}

// testKilled leaves the leftovers of a `dray` killed after each step.
func (h oneHierarchy) testKilled(t *testing.T) {
	must(t, os.Mkdir(h.dir, 0o755))
	must(t, releaseHierarchy(h.controller))
	h.wantGone(t)

	release, err := holdHierarchies(h.controller, false)
	must(t, err)
	release()
	if !h.mounted(t) {
		t.Fatal("it is not mounted")
	}
	must(t, releaseHierarchy(h.controller))
	h.wantGone(t)

	must(t, os.Mkdir(h.dir, 0o755))
	c := h.group(t)
	must(t, removeCgroup(context.Background(), c.Path))
	h.wantGone(t)
}

// testZombie: a killed process keeps its group until it is reaped. If the hierarchy were
// unmounted before, it would keep its controller for good.
func (h oneHierarchy) testZombie(t *testing.T) {
	c := h.group(t)
	cmd := exec.Command("sleep", "1000")
	must(t, Place{Cgroup: c}.Start(cmd))
	removed := make(chan error, 1)
	go func() { removed <- removeCgroup(context.Background(), c.Path) }()
	select {
	case err := <-removed:
		t.Errorf("the removal does not wait: %v", err)
		_ = cmd.Wait()
	case <-time.After(1500 * time.Millisecond):
		_ = cmd.Wait()
		must(t, <-removed)
	}
	h.wantGone(t)
	waitFor(t, "the kernel to let go of the controller", func() bool {
		state, err := kernelController(h.controller)
		return err == nil && !state.v1
	})
}

// testRace makes and removes groups on several threads: none may appear in a
// directory that is no longer a hierarchy.
func (h oneHierarchy) testRace(t *testing.T) {
	var makers sync.WaitGroup
	for maker := range 3 {
		makers.Add(1)
		go func() {
			defer makers.Done()
			for i := range 10 {
				c := Cgroup{Path: fmt.Sprintf("/dray-%d-%d-%d", os.Getpid(), maker, i)}
				if err := c.createWith(h.controller, Limits{}); err != nil {
					t.Error(err)
				} else if !isCgroup1(filepath.Join(h.dir, c.Path)) {
					t.Errorf("%s%s is no cgroup", h.dir, c.Path)
				}
				if err := removeCgroup(context.Background(), c.Path); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	makers.Wait()
	h.wantGone(t)
}

// testLock locks what any user can lock: the directory of the mount points.
func (h oneHierarchy) testLock(t *testing.T) {
	dir, err := os.Open(filepath.Dir(h.dir))
	must(t, err)
	defer dir.Close()
	must(t, unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	type held struct {
		release func()
		err     error
	}
	done := make(chan held, 1)
	go func() {
		release, err := holdHierarchies("", false)
		done <- held{release, err}
	}()
	select {
	case got := <-done:
		must(t, got.err)
		got.release()
	case <-time.After(lockPatience):
		t.Fatal("an ordinary user's lock of the directory blocks it")
	}
	info, err := os.Stat(hierarchiesLock)
	must(t, err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others than root may open %s: %v", hierarchiesLock, info.Mode())
	}
}

// TestCgroupV1Root also runs with v2 alone, see TestOnCgroup2.
func TestCgroupV1Root(t *testing.T) {
	root := t.TempDir()
	hs := []hierarchy{{mount: root + "/cpu", controllers: []string{"cpu"}}, {mount: root + "/unified", v2: true, controllers: []string{hugetlb}}}
	want, wantLimits := root, "cgroup v1, mounted while a chain needs it"
	if describeMode(t) == "v2" { // those in root are another's
		want, wantLimits = "", "cgroup v2"
	}
	if got := v1Root(hs); got != want {
		t.Errorf("v1 hierarchies are mounted in %q, want %q", got, want)
	}
	if got, err := hugePageLimits(hs, true, nil); got != wantLimits || err != nil {
		t.Errorf("huge-page limits are by %q (%v), want %q", got, err, wantLimits)
	}
}

// TestCgroupHugePageLimits uses a directory that rejects mounts.
func TestCgroupHugePageLimits(t *testing.T) {
	if describeMode(t) == "v2" {
		t.Skip("this host has v2 alone")
	}
	v1 := hierarchy{mount: "/nowhere/cpu", controllers: []string{"cpu"}}
	hs := []hierarchy{v1, {mount: "/nowhere/unified", v2: true, controllers: []string{hugetlb}}}
	if got, err := hugePageLimits(hs, true, nil); got != "cgroup v2" || err != nil {
		t.Errorf("where v2 has the controller: %q, %v", got, err)
	}
	got, err := hugePageLimits(hs[:1], true, nil)
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), unix.ENOENT.Error()) {
		t.Errorf("where nothing has it: %q, %v", got, err)
	}
	if got, err := hugePageLimits(hs[:1], false, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("where the kernel lacks it: %q, %v", got, err)
	}
	if err := notMounted(hugetlb, hs, unix.EROFS); !strings.Contains(err.Error(), "container") {
		t.Errorf("where it is read-only: %v", err)
	}
	refused := &Unsupported{What: "hierarchy", Why: "a container cannot", Fix: "mount it outside"}
	var u *Unsupported
	if got, err := hugePageLimits(hs[:1], true, refused); !errors.As(err, &u) || !strings.Contains(u.Why, refused.Why) || u.Fix != refused.Fix {
		t.Errorf("in a cgroup namespace: %q, %v", got, err)
	}
	if got, err := hugePageLimits(hs, true, refused); got != "cgroup v2" || err != nil {
		t.Errorf("in a cgroup namespace where v2 has the controller: %q, %v", got, err)
	}
	v1.controllers = []string{hugetlb}
	if got, err := hugePageLimits([]hierarchy{v1}, true, nil); got != "cgroup v1" || err != nil {
		t.Errorf("where it is mounted: %q, %v", got, err)
	}
}

// TestFreeController runs on plain files instead of a cgroup2 mount.
func TestFreeController(t *testing.T) {
	for _, test := range []struct {
		limit string
		free  bool
	}{{"max\n", true}, {"9223372036854771712\n", true}, {"8388608\n", false}, {"0\n", false}} {
		root := t.TempDir()
		group := filepath.Join(root, "dray", "du")
		must(t, os.MkdirAll(group, 0o755))
		must(t, os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), nil, 0o600))
		must(t, os.WriteFile(filepath.Join(group, "pids.max"), []byte("512\n"), 0o600))
		must(t, os.WriteFile(filepath.Join(group, "hugetlb.2MB.max"), []byte(test.limit), 0o600))
		if got := freeController(root, hugetlb); got != test.free {
			t.Errorf("with a limit of %q it is free: %v", test.limit, got)
		}
		text, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
		must(t, err)
		if want := map[bool]string{true: "-hugetlb"}[test.free]; string(text) != want {
			t.Errorf("with a limit of %q: %q is written, want %q", test.limit, text, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
)

// KindHierarchy is a cgroup v1 hierarchy that Drayage mounted for the controller
// Name. All chains share it; it is removed with its last group.
const KindHierarchy step.Kind = "cgroup hierarchy"

// hugetlb is the one controller that a host with v1 hierarchies may leave unmounted
// or in v2. Container engines do not look for it there.
const hugetlb = "hugetlb"

// ownMountSource marks the hierarchies that Drayage mounted: /proc/self/mountinfo
// shows it as their source. It exists as long as the mount.
const ownMountSource = "dray"

// HugetlbResource is the hierarchy that huge-page limits may need.
func HugetlbResource() step.Resource { return step.Resource{Kind: KindHierarchy, Name: hugetlb} }

// holdHierarchies stops every other `dray` from mounting and unmounting hierarchies
// until the caller calls release: a directory made below a hierarchy that is then
// unmounted would be no cgroup. It first mounts the controller, if one is named and
// the v1 hierarchies lack it. weighs stops others from changing weights as well.
func holdHierarchies(controller string, weighs bool) (release func(), err error) {
	how := unix.LOCK_SH
	if controller != "" || weighs {
		how = unix.LOCK_EX
	}
	root, release, err := lockV1(how)
	if err == nil && root == "" && weighs {
		return lockHierarchies(how)
	}
	if err != nil || root == "" || controller == "" {
		return release, err
	}
	if err := mountHierarchy(root, controller); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// hierarchiesLock is one empty file per host, whatever the state directory; it is
// never removed. Only root may open it, since opening allows locking.
var hierarchiesLock = "/run/.dray-hierarchies"

// lockPatience bounds the wait for hierarchiesLock. A holder keeps it at most until
// the kernel releases a controller, see remount and settle.
const lockPatience = time.Minute

// lockV1 locks the v1 hierarchies, at most until the process ends. root is the
// directory of their mount points; empty if there are none.
func lockV1(how int) (root string, release func(), err error) {
	hs, err := hierarchies()
	if err != nil {
		return "", nil, err
	}
	if root = v1Root(hs); root == "" {
		return "", func() {}, nil
	}
	release, err = lockHierarchies(how)
	return root, release, err
}

// lockHierarchies locks hierarchiesLock, at most until the process ends.
func lockHierarchies(how int) (release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	release, err = LockFile(ctx, hierarchiesLock, how)
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("cgroup hierarchies: %w: end the process that holds it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cgroup hierarchies: %w", err)
	}
	return release, nil
}

// v1Root is the directory of the v1 hierarchies' mount points, such as
// /sys/fs/cgroup. It is empty if v2 is mounted there: any v1 hierarchy elsewhere is
// then private to its user.
func v1Root(hs []hierarchy) string {
	if cgroups.IsCgroup2UnifiedMode() {
		return ""
	}
	for _, h := range hs {
		if !h.v2 {
			return filepath.Dir(h.mount)
		}
	}
	return ""
}

// mountHierarchy mounts the controller's v1 hierarchy below root unless it is
// mounted. If that fails and the v2 hierarchy has the controller, it stays there.
func mountHierarchy(root, controller string) error {
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(hs, func(h hierarchy) bool { return !h.v2 && h.has(controller) }) {
		return nil
	}
	dir := filepath.Join(root, controller)
	unified, onUnified := onHybrid(hs, controller)
	if err = ProbeHierarchyMount(controller); err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = mountOwn(dir, controller)
		if errors.Is(err, unix.EBUSY) && onUnified && freeController(unified.mount, controller) {
			err = remount(dir, controller)
		}
		if err == nil {
			return nil
		}
		_ = unix.Rmdir(dir) // it is empty
	}
	if onUnified {
		return nil // the limits are set there
	}
	return notMounted(controller, hs, err)
}

func notMounted(controller string, hs []hierarchy, why error) error {
	fix := controllerFix(controller, hs)
	reason := fmt.Sprintf("mounting one fails: %v", why)
	var refused *Unsupported
	switch {
	case errors.As(why, &refused):
		reason, fix = refused.Why, refused.Fix
	case errors.Is(why, unix.EROFS):
		fix = "run dray on the host, or in a container that may mount in " + v1Root(hs)
	}
	return &Unsupported{
		What: controller + " limit",
		Why:  fmt.Sprintf("no hierarchy has the controller %s, and %s", controller, reason),
		Fix:  fix,
	}
}

// initialCgroupNamespace is what /proc/PID/ns/cgroup links to outside containers:
// PROC_CGROUP_INIT_INO of the kernel's linux/proc_ns.h, the same in all releases.
const initialCgroupNamespace = "cgroup:[4026531835]"

// ProbeHierarchyMount returns *Unsupported if this process cannot mount the
// controller's v1 hierarchy. The kernel creates a hierarchy only for a process in
// the initial cgroup namespace, whatever its capabilities. An existing one can be
// mounted from any namespace.
func ProbeHierarchyMount(controller string) error {
	ns, err := os.Readlink("/proc/self/ns/cgroup")
	if err != nil || ns == initialCgroupNamespace {
		return nil // a kernel without cgroup namespaces has no such rule
	}
	if c, err := kernelController(controller); err != nil || c.v1 {
		return err
	}
	dir := "/sys/fs/cgroup/" + controller
	return &Unsupported{
		What: "cgroup v1 hierarchy of " + controller,
		Why:  "a process in a cgroup namespace, such as a container's, cannot create one",
		Fix: fmt.Sprintf("run dray on the host; or run there, before the container starts: mkdir -p %s && mount -t cgroup -o %s cgroup %s",
			dir, controller, dir),
	}
}

// freeController disables the controller in the groups of a v2 hierarchy if none of
// them has a limit from it: its user may be gone. It reports whether it did.
func freeController(root, controller string) bool {
	limited := false
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if gone(err) || err == nil && d.IsDir() {
			return nil
		}
		name := filepath.Base(p)
		if err != nil || !strings.HasPrefix(name, controller+".") || !strings.HasSuffix(name, "max") {
			return err
		}
		text, err := os.ReadFile(p)
		if gone(err) {
			return nil
		}
		limited = limited || !unlimited(string(text))
		return err
	})
	return err == nil && !limited && writeExisting(filepath.Join(root, "cgroup.subtree_control"), []byte("-"+controller)) == nil
}

// unlimited reports whether a limit's value means none: "max", or the largest whole
// number of pages, in bytes.
func unlimited(text string) bool {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseUint(text, 10, 64)
	return text == "max" || err == nil && n >= 1<<62
}

func mountOwn(dir, controller string) error {
	return mount(ownMountSource, dir, "cgroup", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, controller)
}

// remount mounts the hierarchy when the kernel has released its controller.
func remount(dir, controller string) (err error) {
	const attempts, pause = 100, 20 * time.Millisecond
	for i := 0; i < attempts; i++ {
		err = mountOwn(dir, controller)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(pause)
	}
	return err
}

// releaseHierarchy unmounts the controller's hierarchy and removes its directory,
// if Drayage mounted it and it has no groups.
func releaseHierarchy(controller string) error {
	root, release, err := lockV1(unix.LOCK_EX)
	if err != nil || root == "" {
		return err
	}
	defer release()
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, controller)
	for _, h := range hs {
		if h.v2 || !h.has(controller) {
			continue
		}
		if h.mount != dir || !h.own {
			return nil
		}
		if used, err := hasGroups(dir); err != nil || used {
			return err
		}
		settle(controller)
		// A process may have its directory open: that keeps no group alive.
		if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	// It may never have been made. If it is not empty, it is not Drayage's.
	_ = unix.Rmdir(dir)
	return nil
}

// settlePatience bounds settle. A killed process keeps its group until its parent,
// which may be short of CPU, has reaped it.
const settlePatience = 20 * time.Second

// settle waits until the kernel has released the removed groups. A hierarchy
// unmounted earlier keeps its controller until it is mounted again.
func settle(controller string) {
	for end := time.Now().Add(settlePatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := kernelController(controller); err != nil || c.groups <= 1 {
			return
		}
	}
}

func hasGroups(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	return slices.ContainsFunc(entries, fs.DirEntry.IsDir), err
}

// releaseHierarchies unmounts every empty hierarchy that Drayage mounted.
func releaseHierarchies(hs []hierarchy) error {
	var errs []error
	for _, h := range hs {
		if h.own && !h.v2 {
			errs = append(errs, releaseHierarchy(filepath.Base(h.mount)))
		}
	}
	return errors.Join(errs...)
}

// HugePageLimits returns the hierarchy that limits a function's huge pages.
func HugePageLimits() (hierarchy string, err error) {
	hs, err := hierarchies()
	if err != nil {
		return "", err
	}
	c, err := kernelController(hugetlb)
	return hugePageLimits(hs, err == nil && c.enabled, ProbeHierarchyMount(hugetlb))
}

// hugePageLimits is HugePageLimits for these hierarchies. enabled says that the
// kernel has the controller, mounted or not; refused is the mount error.
func hugePageLimits(hs []hierarchy, enabled bool, refused error) (string, error) {
	if root := v1Root(hs); root != "" {
		if slices.ContainsFunc(hs, func(h hierarchy) bool { return !h.v2 && h.has(hugetlb) }) {
			return "cgroup v1", nil
		}
		_, onUnified := onHybrid(hs, hugetlb)
		err := cmp.Or(refused, unix.Access(root, unix.W_OK)) // read-only in some containers
		if enabled && err == nil {
			return "cgroup v1, mounted while a chain needs it", nil
		}
		if enabled && !onUnified {
			return "", notMounted(hugetlb, hs, err)
		}
	}
	if err := checkControllers(Limits{HugePages: map[uint64]uint64{2 << 20: 0}}, hs); err != nil {
		return "", err
	}
	return "cgroup v2", nil
}

// controllerState is the kernel's report of a controller, mounted or not.
type controllerState struct {
	enabled bool
	v1      bool // a v1 hierarchy has it, even if not mounted in this namespace
	groups  int  // in its hierarchy, root included
}

// kernelController reads lines of /proc/cgroups: name, hierarchy, groups, enabled.
func kernelController(name string) (controllerState, error) {
	text, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		return controllerState{}, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 4 && f[0] == name {
			groups, err := strconv.Atoi(f[2])
			return controllerState{enabled: f[3] == "1", v1: f[1] != "0", groups: groups}, err
		}
	}
	return controllerState{}, nil
}

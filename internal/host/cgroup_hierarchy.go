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

// KindHierarchy is a cgroup v1 hierarchy that Drayage mounted, for the controller
// Name. All chains use the same: it goes with the last group in it.
const KindHierarchy step.Kind = "cgroup hierarchy"

// hugetlb is the one controller that hosts with v1 hierarchies may not mount at
// all, or have in their v2 hierarchy, if container engines do not look for it.
const hugetlb = "hugetlb"

// ownMountSource tells the hierarchies that Drayage mounted from all others: it is
// the source that /proc/self/mountinfo shows. It comes and goes with the mount.
const ownMountSource = "dray"

// HugetlbResource is the hierarchy that limits of huge pages may need to be mounted.
func HugetlbResource() step.Resource { return step.Resource{Kind: KindHierarchy, Name: hugetlb} }

// holdHierarchies keeps every other `dray` from mounting and unmounting hierarchies
// until the returned function is called: a directory that is made below a hierarchy
// which goes meanwhile would be no cgroup. A controller that is named, and that
// v1 hierarchies lack, is mounted first.
func holdHierarchies(controller string) (release func(), err error) {
	how := unix.LOCK_SH
	if controller != "" {
		how = unix.LOCK_EX
	}
	root, release, err := lockV1(how)
	if err != nil || root == "" || controller == "" {
		return release, err
	}
	if err := mountHierarchy(root, controller); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// hierarchiesLock is one file for the whole host, whatever the state directory. It
// stays, empty. Only root may open it: whoever can open a file can lock it.
const hierarchiesLock = "/run/.dray-hierarchies"

// lockPatience bounds the wait for hierarchiesLock. Nobody keeps it for longer
// than the kernel takes to let go of a controller, see remount and settle.
const lockPatience = 30 * time.Second

// lockV1 locks the v1 hierarchies; root, which holds their mount points, is empty
// if there are none. The lock ends with the process, at the latest.
func lockV1(how int) (root string, release func(), err error) {
	hs, err := hierarchies()
	if err != nil {
		return "", nil, err
	}
	if root = v1Root(hs); root == "" {
		return "", func() {}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	release, err = LockFile(ctx, hierarchiesLock, how)
	if errors.Is(err, ErrLocked) {
		return "", nil, fmt.Errorf("cgroup hierarchies: %w: end the process that holds it", err)
	}
	if err != nil {
		return "", nil, fmt.Errorf("cgroup hierarchies: %w", err)
	}
	return root, release, nil
}

// v1Root is the directory that holds the mount points of the v1 hierarchies, such
// as /sys/fs/cgroup. It is empty if v2 is there instead: v1 hierarchies that are
// mounted elsewhere then are somebody's own.
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
// mounted. If it cannot be, and the v2 hierarchy has the controller, it stays there.
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
		_ = unix.Rmdir(dir) // nothing is in it
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

// initialCgroupNamespace is what /proc/PID/ns/cgroup links to outside every container:
// PROC_CGROUP_INIT_INO of the kernel's linux/proc_ns.h, the same in every release.
const initialCgroupNamespace = "cgroup:[4026531835]"

// ProbeHierarchyMount returns an *Unsupported error if this process cannot mount the
// controller's v1 hierarchy. The kernel makes a new hierarchy only for a process in
// the initial cgroup namespace, whatever its capabilities; one that exists can be
// mounted again from any namespace.
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
		Why:  "no process in a cgroup namespace, such as a container's, can make one",
		Fix: fmt.Sprintf("run dray on the host; or run there, before the container starts: mkdir -p %s && mount -t cgroup -o %s cgroup %s",
			dir, controller, dir),
	}
}

// freeController takes the controller from the groups of a v2 hierarchy if none
// of them limits anything by it: it may have been enabled for one that has gone. It
// says whether it did.
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

// unlimited reads the value of a limit. Kernels write none as "max", or as the
// largest number of bytes that whole pages give.
func unlimited(text string) bool {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseUint(text, 10, 64)
	return text == "max" || err == nil && n >= 1<<62
}

func mountOwn(dir, controller string) error {
	return unix.Mount(ownMountSource, dir, "cgroup", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, controller)
}

// remount mounts the hierarchy once the kernel has let go of what used its controller.
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

// releaseHierarchy unmounts the controller's hierarchy if Drayage mounted it and
// nobody has a group in it, and removes its directory.
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
		// Somebody may be looking into it: that keeps no group of it alive.
		if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	// It may never have been made. What has something in it is not Drayage's.
	_ = unix.Rmdir(dir)
	return nil
}

// settle waits until the kernel has let go of the groups that were removed. A
// hierarchy that is unmounted before keeps its controller until it is mounted again.
func settle(controller string) {
	const attempts, pause = 100, 10 * time.Millisecond
	for i := 0; i < attempts; i++ {
		if c, err := kernelController(controller); err != nil || c.groups <= 1 {
			return
		}
		time.Sleep(pause)
	}
}

func hasGroups(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	return slices.ContainsFunc(entries, fs.DirEntry.IsDir), err
}

// releaseHierarchies unmounts every hierarchy that Drayage mounted and that has
// become empty.
func releaseHierarchies(hs []hierarchy) error {
	var errs []error
	for _, h := range hs {
		if h.own && !h.v2 {
			errs = append(errs, releaseHierarchy(filepath.Base(h.mount)))
		}
	}
	return errors.Join(errs...)
}

// HugePageLimits says by which hierarchy this host limits a function's huge pages.
func HugePageLimits() (hierarchy string, err error) {
	hs, err := hierarchies()
	if err != nil {
		return "", err
	}
	c, err := kernelController(hugetlb)
	return hugePageLimits(hs, err == nil && c.enabled, ProbeHierarchyMount(hugetlb))
}

// hugePageLimits is HugePageLimits if these hierarchies are mounted. enabled says
// that the kernel has the controller, mounted or not; refused says why it would not
// mount its hierarchy.
func hugePageLimits(hs []hierarchy, enabled bool, refused error) (string, error) {
	if root := v1Root(hs); root != "" {
		if slices.ContainsFunc(hs, func(h hierarchy) bool { return !h.v2 && h.has(hugetlb) }) {
			return "cgroup v1", nil
		}
		_, onUnified := onHybrid(hs, hugetlb)
		err := cmp.Or(refused, unix.Access(root, unix.W_OK)) // a container may have it read-only
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

// controllerState is what the kernel says of a controller, mounted or not.
type controllerState struct {
	enabled bool
	v1      bool // a v1 hierarchy has it, mounted where this process sees it or not
	groups  int  // in its hierarchy; the root counts
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

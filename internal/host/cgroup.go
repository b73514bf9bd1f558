// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/step"
)

// KindCgroup is a cgroup tree, in every hierarchy, with all processes in it:
// removing it kills them. Every process that Drayage starts is in one.
const KindCgroup step.Kind = "cgroup"

// Cgroup names a cgroup by its path below the root of each hierarchy, such as
// "/dray/f1-split/du". The zero Cgroup is the one of this process.
type Cgroup struct {
	Path string
	// paths are absolute directories by controller, for a cgroup that Drayage
	// did not make (see CgroupOf); nil for one below Path.
	paths map[string]string
}

// Limits bounds what the processes of a cgroup may use. Zero fields limit nothing.
type Limits struct {
	CPUs      []int             // cpuset; also the NUMA nodes are left as they are
	Memory    uint64            // bytes, without swap
	Pids      int               // processes and threads
	HugePages map[uint64]uint64 // page size in bytes → limit in bytes
}

// CgroupResource is the cgroup tree at path and everything in it.
func CgroupResource(c Cgroup) step.Resource { return step.Resource{Kind: KindCgroup, Path: c.Path} }

// Child is the cgroup of that name below c.
func (c Cgroup) Child(name string) Cgroup { return Cgroup{Path: path.Join(c.Path, name)} }

func (c Cgroup) manager(l Limits) (cgroups.Manager, error) {
	res := &cgroups.Resources{SkipDevices: true, PidsLimit: int64(l.Pids), CpusetCpus: FormatCPUs(l.CPUs)}
	if l.Memory > 0 {
		res.Memory, res.MemorySwap = int64(l.Memory), int64(l.Memory)
	}
	for size, limit := range l.HugePages {
		res.HugetlbLimit = append(res.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: pageSizeName(size), Limit: limit})
	}
	m, err := manager.New(&cgroups.Cgroup{Path: c.Path, Resources: res})
	if err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", c.Path, err)
	}
	return m, nil
}

// pageSizeName is the size as the kernel's hugetlb files spell it.
func pageSizeName(size uint64) string {
	if size >= 1<<30 {
		return strconv.FormatUint(size>>30, 10) + "GB"
	}
	return strconv.FormatUint(size>>20, 10) + "MB"
}

// Create makes the cgroup in every hierarchy and sets its limits.
func (c Cgroup) Create(l Limits) error {
	m, err := c.manager(l)
	if err != nil {
		return err
	}
	if err := m.Apply(-1); err != nil {
		return fmt.Errorf("create cgroup %s: %w", c.Path, err)
	}
	if err := m.Set(nil); err != nil {
		return fmt.Errorf("limit cgroup %s: %w", c.Path, err)
	}
	return nil
}

// dirs are the cgroup's directories by controller ("" on cgroup v2).
func (c Cgroup) dirs() (map[string]string, error) {
	if c.paths != nil || c.Path == "" {
		return c.paths, nil
	}
	m, err := c.manager(Limits{})
	if err != nil {
		return nil, err
	}
	existing := map[string]string{}
	for controller, dir := range m.GetPaths() {
		if _, err := os.Stat(dir); err == nil {
			existing[controller] = dir
		}
	}
	return existing, nil
}

// Processes lists the processes in the cgroup and everything below it.
func (c Cgroup) Processes() ([]int, error) {
	dirs, err := c.dirs()
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	var pids []int
	for _, dir := range dirs {
		in, err := cgroups.GetAllPids(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, pid := range in {
			if !seen[pid] {
				seen[pid] = true
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// CgroupOf is the cgroup that a process is in.
func CgroupOf(pid int) (Cgroup, error) {
	byController, err := cgroups.ParseCgroupFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return Cgroup{}, fmt.Errorf("cgroup of process %d: %w", pid, err)
	}
	paths := map[string]string{}
	if cgroups.IsCgroup2UnifiedMode() {
		paths[""] = filepath.Join("/sys/fs/cgroup", byController[""])
		return Cgroup{Path: byController[""], paths: paths}, nil
	}
	for controller, rel := range byController {
		if root, err := cgroups.FindCgroupMountpoint("", controller); err == nil {
			paths[controller] = filepath.Join(root, rel)
		}
	}
	return Cgroup{Path: byController["memory"], paths: paths}, nil
}

// joinThread puts the calling thread into the cgroup (v1 only); a process that
// it forks is born there.
func (c Cgroup) joinThread() error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), tid, 0); err != nil {
			return fmt.Errorf("enter cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// Kill kills every process in the cgroup and below it, and returns once none is
// left. A cgroup that does not exist is empty.
func (c Cgroup) Kill(ctx context.Context) error {
	if c.Path == "" || c.Path == "/" {
		return fmt.Errorf("refusing to kill the processes of the root cgroup")
	}
	for {
		pids, err := c.Processes()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d in cgroup %s: %w", pid, c.Path, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cgroup %s: processes %v do not die: %w", c.Path, pids, ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// removeCgroup kills every process in the tree and removes it.
func removeCgroup(ctx context.Context, path string) error {
	c := Cgroup{Path: path}
	if err := c.Kill(ctx); err != nil {
		return err
	}
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := cgroups.RemovePath(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/cpulist"
)

// KindCgroup is a cgroup tree, in every hierarchy. Its removal kills all processes
// in it. Drayage starts every process in one.
const KindCgroup step.Kind = "cgroup"

// Cgroup names a cgroup by its path below the root of each hierarchy, such as
// "/dray/f1-split/du". The zero Cgroup is this process's.
//
// On cgroup v2 only leaves may hold processes: a function's cgroup carries the
// limits, and its children "run" and "tools" the processes.
type Cgroup struct {
	Path string `json:"path"`
	// Foreign are a cgroup's directories that Drayage did not make (see CgroupOf),
	// one per hierarchy; empty for one below Path.
	Foreign []string `json:"foreign,omitempty"`
}

// Limits bounds what the processes of a cgroup may use. Zero fields limit nothing.
type Limits struct {
	CPUs      []int             // cpuset; memory comes from their NUMA nodes if these hold Memory and HugePages
	Share     float64           // of the largest weight for CPU time, 0 to 1, relative to siblings; 0: the usual weight
	Memory    uint64            // bytes, without swap
	Pids      int               // processes and threads
	HugePages map[uint64]uint64 // page size in bytes → limit in bytes
}

// ownPrefix starts the path of each cgroup that Drayage makes and removes.
const ownPrefix = "/dray"

// CgroupResource is the cgroup tree at path and everything in it.
func CgroupResource(c Cgroup) step.Resource { return step.Resource{Kind: KindCgroup, Path: c.Path} }

// Child is the cgroup of that name below c.
func (c Cgroup) Child(name string) Cgroup { return Cgroup{Path: path.Join(c.Path, name)} }

// Create makes the cgroup and its missing parents in every hierarchy, and sets its
// limits. It returns *Unsupported if this host has no controller for a limit. A
// huge-page limit may create HugetlbResource.
func (c Cgroup) Create(l Limits) error {
	controller := ""
	if len(l.HugePages) > 0 {
		controller = hugetlb
	}
	return c.createWith(controller, l)
}

// createWith is Create; it first mounts the controller, if not empty.
func (c Cgroup) createWith(controller string, l Limits) error {
	if err := checkOwnCgroup(c.Path); err != nil {
		return err
	}
	release, err := holdHierarchies(controller, l.Share > 0)
	if err != nil {
		return fmt.Errorf("create cgroup %s: %w", c.Path, err)
	}
	defer release()
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	if err := checkControllers(l, hs); err != nil {
		return fmt.Errorf("create cgroup %s: %w", c.Path, err)
	}
	// Another `dray` may remove the common parent before we create the child,
	// because the parent is still empty.
	const attempts = 20
	for i := 0; i < attempts; i++ {
		if err = c.create(l, hs); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create cgroup %s: %w (on cgroup v2 a parent cannot delegate a controller while processes are directly in it: in a container, move them to a child cgroup first)", c.Path, err)
	}
	if err != nil {
		return fmt.Errorf("create cgroup %s: %w", c.Path, err)
	}
	return nil
}

// creating serialises create: the library's managers share unguarded variables.
var creating sync.Mutex

func (c Cgroup) create(l Limits, hs []hierarchy) error {
	creating.Lock()
	defer creating.Unlock()
	unified, onUnified := onHybrid(hs, hugetlb)
	res := l.resources()
	res.CpusetMems = cpusetNodes(hs, l)
	if onUnified {
		res.HugetlbLimit = nil // the library supports hugetlb only on v1 or pure v2
	}
	m, err := manager.NewWithPaths(&cgroups.Cgroup{Path: c.Path, Resources: res}, c.paths(hs))
	if err != nil {
		return err
	}
	if err := m.Apply(-1); err != nil {
		return err
	}
	if err := m.Set(res); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	if l.Share > 0 {
		if err := c.weigh(l.Share, hs); err != nil {
			return err
		}
	}
	if onUnified && len(l.HugePages) > 0 {
		return limitHugetlb(unified.mount, c.Path, l.HugePages)
	}
	return nil
}

// paths are the cgroup's directories by controller; nil on pure v2, whose only
// hierarchy stays. Left to itself, the library caches hierarchies and would create
// directories where one was since unmounted.
func (c Cgroup) paths(hs []hierarchy) map[string]string {
	if cgroups.IsCgroup2UnifiedMode() {
		return nil
	}
	paths := map[string]string{}
	for _, h := range hs {
		dir := path.Join(h.mount, c.Path)
		if h.v2 {
			paths[""] = dir
			continue
		}
		for _, controller := range h.controllers {
			paths[controller] = dir
		}
	}
	return paths
}

func (l Limits) resources() *cgroups.Resources {
	res := &cgroups.Resources{SkipDevices: true, PidsLimit: int64(l.Pids), CpusetCpus: cpulist.Format(l.CPUs)}
	if l.Memory > 0 {
		res.Memory = int64(l.Memory)
		if swapAccounted() {
			res.MemorySwap = int64(l.Memory) // memory and swap together: no swap
		}
	}
	for size, limit := range l.HugePages {
		res.HugetlbLimit = append(res.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: pageSizeName(size), Limit: limit})
	}
	return res
}

// pageSizeName is the size as the kernel's hugetlb files spell it.
func pageSizeName(size uint64) string {
	switch {
	case size >= 1<<30:
		return strconv.FormatUint(size>>30, 10) + "GB"
	case size >= 1<<20:
		return strconv.FormatUint(size>>20, 10) + "MB"
	default:
		return strconv.FormatUint(size>>10, 10) + "KB"
	}
}

// checkOwnCgroup refuses every path that Drayage must not create or remove.
func checkOwnCgroup(p string) error {
	if path.Clean(p) != p || !strings.HasPrefix(p, ownPrefix) {
		return fmt.Errorf("cgroup %q is not Drayage's own: its path must begin with %s", p, ownPrefix)
	}
	return nil
}

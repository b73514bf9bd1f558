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

// KindCgroup is a cgroup tree, in every hierarchy, with all processes in it:
// removing it kills them. Every process that Drayage starts is in one.
const KindCgroup step.Kind = "cgroup"

// Cgroup names a cgroup by its path below the root of each hierarchy, such as
// "/dray/f1-split/du". The zero Cgroup is the one of this process.
//
// On cgroup v2 only leaves may hold processes: a function's cgroup carries the
// limits, its children "run" and "tools" the processes.
type Cgroup struct {
	Path string `json:"path"`
	// Foreign are the directories of a cgroup that Drayage did not make (see
	// CgroupOf), one a hierarchy; empty for one below Path.
	Foreign []string `json:"foreign,omitempty"`
}

// Limits bounds what the processes of a cgroup may use. Zero fields limit nothing.
type Limits struct {
	CPUs      []int             // cpuset; memory comes from their NUMA nodes if these have as much as Memory and HugePages
	Memory    uint64            // bytes, without swap
	Pids      int               // processes and threads
	HugePages map[uint64]uint64 // page size in bytes → limit in bytes
}

// ownPrefix opens the path of each cgroup that Drayage makes and may remove.
const ownPrefix = "/dray"

// CgroupResource is the cgroup tree at path and everything in it.
func CgroupResource(c Cgroup) step.Resource { return step.Resource{Kind: KindCgroup, Path: c.Path} }

// Child is the cgroup of that name below c.
func (c Cgroup) Child(name string) Cgroup { return Cgroup{Path: path.Join(c.Path, name)} }

// Create makes the cgroup, and the parents that are missing, in every hierarchy
// and sets its limits. A limit that this host has no controller for is an
// *Unsupported error. A limit of huge pages may make HugetlbResource.
func (c Cgroup) Create(l Limits) error {
	controller := ""
	if len(l.HugePages) > 0 {
		controller = hugetlb
	}
	return c.createWith(controller, l)
}

// createWith is Create if a controller, if one is named, is mounted first.
func (c Cgroup) createWith(controller string, l Limits) error {
	if err := checkOwnCgroup(c.Path); err != nil {
		return err
	}
	release, err := holdHierarchies(controller)
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
	// Another `dray` may remove the common parent, empty at that moment,
	// between the making of the parent and of the child.
	const attempts = 20
	for i := 0; i < attempts; i++ {
		if err = c.create(l, hs); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create cgroup %s: %w (on cgroup v2 a parent cannot hand on a controller while processes are directly in it: in a container, move them to a child cgroup first)", c.Path, err)
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
		res.HugetlbLimit = nil // the library knows hugetlb on v1 or on pure v2 only
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
	if onUnified && len(l.HugePages) > 0 {
		return limitHugetlb(unified.mount, c.Path, l.HugePages)
	}
	return nil
}

// paths are where the cgroup is in each hierarchy, by controller. The library would
// keep hierarchies in mind that have been unmounted since, and make directories
// there. It is nil on pure v2, whose one hierarchy stays.
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

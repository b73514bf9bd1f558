// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// hierarchy is one mounted tree of cgroups.
type hierarchy struct {
	mount string
	v2    bool
	// controllers are v1 mount options ("cpu", "cpuacct", "name=systemd"), or the
	// controllers that a v2 root offers.
	controllers []string
	own         bool // Drayage mounted it
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// hierarchies lists each mounted hierarchy once.
func hierarchies() ([]hierarchy, error) {
	infos, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("list cgroup mounts: %w", err)
	}
	// A later mount may hide a listed one.
	visible := slices.DeleteFunc(infos, func(info *mountinfo.Info) bool {
		var st unix.Statfs_t
		err := unix.Statfs(info.Mountpoint, &st)
		return err != nil || st.Type != unix.CGROUP_SUPER_MAGIC && st.Type != unix.CGROUP2_SUPER_MAGIC
	})
	return hierarchiesFrom(visible), nil
}

func hierarchiesFrom(infos []*mountinfo.Info) []hierarchy {
	type device struct{ major, minor int }
	seen := map[device]bool{}
	var hs []hierarchy
	for _, info := range infos {
		if d := (device{info.Major, info.Minor}); seen[d] {
			continue
		} else {
			seen[d] = true
		}
		h := hierarchy{mount: info.Mountpoint, v2: info.FSType == "cgroup2", own: info.Source == ownMountSource}
		if h.v2 {
			b, _ := os.ReadFile(filepath.Join(h.mount, "cgroup.controllers"))
			h.controllers = strings.Fields(string(b))
		} else {
			h.controllers = strings.Split(info.VFSOptions, ",")
		}
		hs = append(hs, h)
	}
	return hs
}

// dirs are the cgroup's existing directories, by hierarchy.
func (c Cgroup) dirs() ([]string, error) {
	if len(c.Foreign) > 0 || c.Path == "" {
		return c.Foreign, nil
	}
	hs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var existing []string
	for _, h := range hs {
		dir := filepath.Join(h.mount, c.Path)
		if _, err := os.Stat(dir); err == nil {
			existing = append(existing, dir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return existing, nil
}

// isV2 reports whether the directory is a cgroup of a v2 hierarchy.
func isV2(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// Exists reports whether the cgroup exists in any hierarchy.
func (c Cgroup) Exists() (bool, error) {
	dirs, err := c.dirs()
	return len(dirs) > 0, err
}

// Processes lists the processes in the cgroup and below it, ascending. It excludes
// this process, and others that have only entered with a thread to start a program.
func (c Cgroup) Processes() ([]int, error) {
	dirs, err := c.dirs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range dirs {
		in, err := processesBelow(dir)
		if err != nil {
			return nil, err
		}
		pids = append(pids, in...)
	}
	slices.Sort(pids)
	self := os.Getpid()
	return slices.DeleteFunc(slices.Compact(pids), func(pid int) bool { return pid == self }), nil
}

// processesBelow ignores cgroups that vanish during the walk.
func processesBelow(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if gone(err) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		in, err := cgroups.GetPids(p)
		if gone(err) {
			return nil
		}
		pids = append(pids, residents(p, in)...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list processes of cgroup %s: %w", dir, err)
	}
	return pids, nil
}

// residents drops the processes whose main thread is in another cgroup than dir: v1
// lists a process for any of its threads (see joinThread).
func residents(dir string, pids []int) []int {
	tasks, err := os.ReadFile(filepath.Join(dir, "tasks"))
	if err != nil || len(pids) == 0 {
		return pids // of v2, say
	}
	in := map[string]bool{}
	for _, tid := range strings.Fields(string(tasks)) {
		in[tid] = true
	}
	// A main thread that has ended is in no cgroup, and the others may run on.
	return slices.DeleteFunc(pids, func(pid int) bool { return !in[strconv.Itoa(pid)] && mainThreadRuns(pid) })
}

// gone reports whether an error means that the cgroup was removed.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// CgroupOf is the cgroup that a process is in.
func CgroupOf(pid int) (Cgroup, error) {
	byController, err := cgroups.ParseCgroupFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return Cgroup{}, fmt.Errorf("cgroup of process %d: %w", pid, err)
	}
	hs, err := hierarchies()
	if err != nil {
		return Cgroup{}, err
	}
	return cgroupIn(byController, hs), nil
}

func cgroupIn(byController map[string]string, hs []hierarchy) Cgroup {
	var c Cgroup
	for _, h := range hs {
		rel, ok := h.pathIn(byController)
		if !ok {
			continue
		}
		c.Foreign = append(c.Foreign, filepath.Join(h.mount, rel))
		if c.Path == "" || h.has("memory") {
			c.Path = rel
		}
	}
	return c
}

// pathIn picks this hierarchy's path from the lines of /proc/PID/cgroup.
func (h hierarchy) pathIn(byController map[string]string) (rel string, ok bool) {
	if h.v2 {
		rel, ok = byController[""]
		return rel, ok
	}
	for _, controller := range h.controllers {
		if rel, ok := byController[controller]; ok {
			return rel, true
		}
	}
	return "", false
}

// joinThread moves the calling thread into the cgroup's v1 hierarchies; its
// children start there.
func (c Cgroup) joinThread() error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, dir := range dirs {
		if isV2(dir) {
			continue
		}
		if err := writeExisting(filepath.Join(dir, "tasks"), tid); err != nil {
			return fmt.Errorf("enter cgroup: %w", err)
		}
	}
	return nil
}

// writeExisting writes to a kernel file in one call and never creates one.
func writeExisting(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

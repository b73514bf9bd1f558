// SPDX-License-Identifier: Apache-2.0

// Package leftover lists everything that Drayage could leave behind on a machine,
// so that tests and operators can compare before and after. It reads only the
// kernel and /run, never Drayage's own reports.
package leftover

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
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Snapshot is the state at one time: one sorted line per item.
type Snapshot []string

// Take lists the interfaces and qdiscs of this network namespace; pinned namespaces
// and other mounts of Drayage; cgroups named dray… in any hierarchy and their
// processes; processes with a Drayage path as an argument; and the files in
// /run/dray….
func Take() (Snapshot, error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var s Snapshot
	for _, add := range []func() ([]string, error){
		links,
		func() ([]string, error) { return ownMounts(mounts), nil },
		func() ([]string, error) { return ownCgroups(mounts) },
		func() ([]string, error) { return files(mounts) },
		processes,
	} {
		lines, err := add()
		if err != nil {
			return nil, err
		}
		s = append(s, lines...)
	}
	slices.Sort(s)
	return slices.Compact(s), nil
}

// Diff lists what b has and a lacks ("+ …"), and what a has and b lacks ("- …").
func (a Snapshot) Diff(b Snapshot) []string {
	var diff []string
	for _, line := range b {
		if !slices.Contains(a, line) {
			diff = append(diff, "+ "+line)
		}
	}
	for _, line := range a {
		if !slices.Contains(b, line) {
			diff = append(diff, "- "+line)
		}
	}
	return diff
}

// Containing keeps the lines that contain text.
func (a Snapshot) Containing(text string) Snapshot {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return !strings.Contains(line, text) })
}

// links starts again if the kernel says that a list changed while it was made.
func links() (lines []string, err error) {
	const tries = 100
	for range tries {
		if lines, err = linksOnce(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return lines, err
}

func linksOnce() ([]string, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var lines []string
	for _, l := range all {
		a := l.Attrs()
		lines = append(lines, fmt.Sprintf("link %s (%s, %s)", a.Name, l.Type(), a.HardwareAddr))
		qdiscs, err := netlink.QdiscList(l)
		if errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list qdiscs of %s: %w", a.Name, err)
		}
		for _, q := range qdiscs {
			handle := q.Attrs().Handle
			lines = append(lines, fmt.Sprintf("qdisc %s %s on %s", q.Type(), netlink.HandleStr(handle), a.Name))
		}
	}
	return lines, nil
}

func ownMounts(mounts []*mountinfo.Info) []string {
	var lines []string
	for _, m := range mounts {
		switch {
		case m.FSType == "nsfs":
			lines = append(lines, "namespace "+m.Mountpoint)
		case strings.HasPrefix(m.Mountpoint, "/run/dray"):
			lines = append(lines, "mount "+m.Mountpoint)
		}
	}
	return lines
}

func ownCgroups(mounts []*mountinfo.Info) ([]string, error) {
	var lines []string
	for _, m := range mounts {
		if m.FSType != "cgroup" && m.FSType != "cgroup2" {
			continue
		}
		tops, err := filepath.Glob(filepath.Join(m.Mountpoint, "dray*"))
		if err != nil {
			return nil, err
		}
		for _, top := range tops {
			err := walk(top, func(dir string, d fs.DirEntry) error {
				if !d.IsDir() {
					return nil
				}
				lines = append(lines, "cgroup "+dir)
				pids, err := cgroups.GetPids(dir)
				if gone(err) {
					return nil
				}
				for _, pid := range pids {
					lines = append(lines, fmt.Sprintf("process %d (%s) in %s", pid, read(pid, "comm"), dir))
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return lines, nil
}

// files never descends into a mount point: it may be a bind of the host's root.
func files(mounts []*mountinfo.Info) ([]string, error) {
	mounted := map[string]bool{}
	for _, m := range mounts {
		mounted[m.Mountpoint] = true
	}
	tops, err := filepath.Glob("/run/dray*")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, top := range tops {
		err := walk(top, func(path string, d fs.DirEntry) error {
			line := "file " + path
			if target, err := os.Readlink(path); err == nil {
				line += " -> " + target // whose it is
			}
			lines = append(lines, line)
			if d.IsDir() && mounted[path] {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// processes lists those that have a path in /run/dray… as an argument.
func processes() ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if args := strings.ReplaceAll(read(pid, "cmdline"), "\x00", " "); strings.Contains(args, "/run/dray") {
			lines = append(lines, fmt.Sprintf("process %d: %s", pid, args))
		}
	}
	return lines, nil
}

// read reads a file of /proc/PID; empty if the process is gone.
func read(pid int, file string) string {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	return strings.TrimSpace(string(b))
}

// walk is filepath.WalkDir for trees that may change during the walk.
func walk(top string, f func(string, fs.DirEntry) error) error {
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return f(path, d)
	})
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

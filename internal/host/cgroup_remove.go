// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// killPatience bounds how long the processes of a cgroup may take to die. Only
// one stuck in the kernel takes this long.
const killPatience = 20 * time.Second

// removeCgroup kills every process in the tree, then removes the tree and its empty
// parents.
func removeCgroup(ctx context.Context, cgroup string) error {
	if cgroup == ownPrefix {
		return fmt.Errorf("refusing to remove %s: it holds every chain", cgroup)
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	c := Cgroup{Path: cgroup}
	err := c.clear(ctx)
	// A thread that starts a program in it (see joinThread) keeps it busy until it has ended.
	for errors.Is(err, unix.EBUSY) && Sleep(ctx, 10*time.Millisecond) == nil {
		err = c.clear(ctx)
	}
	if err != nil {
		return err
	}
	return removeEmptyParents(cgroup)
}

// clear kills every process in the tree, then removes the tree.
func (c Cgroup) clear(ctx context.Context) error {
	if err := c.Kill(ctx); err != nil {
		return err
	}
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := cgroups.RemovePath(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}

// Kill kills every process in the cgroup and below it, including fork bombs and
// frozen processes, and returns when none is left. A missing cgroup is empty. It
// refuses cgroups that are not Drayage's.
func (c Cgroup) Kill(ctx context.Context) error {
	if err := checkOwnCgroup(c.Path); err != nil {
		return err
	}
	pids, err := c.Processes()
	if err != nil || len(pids) == 0 {
		return err
	}
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		defer stopForking(dir)()
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := c.killEach(pids); err != nil {
			return err
		}
		for _, dir := range dirs {
			thaw(dir)
		}
		if err := Sleep(ctx, pause); err != nil {
			return fmt.Errorf("cgroup %s: processes do not end when killed: %s: %w", c.Path, whereabouts(pids), err)
		}
		if pids, err = c.Processes(); err != nil || len(pids) == 0 {
			return err
		}
	}
}

// whereabouts says what processes are, and where in the kernel each of their threads is.
func whereabouts(pids []int) string {
	var all []string
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is not malformed
		var list []string
		for _, dir := range threads {
			status, _ := os.ReadFile(filepath.Join(dir, "status")) // it may have ended
			at, _ := os.ReadFile(filepath.Join(dir, "wchan"))
			state := statusFields(string(status))["State"]
			list = append(list, strings.TrimSpace(state+" "+strings.TrimSuffix(string(at), "0")))
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		all = append(all, fmt.Sprintf("%d, %q, [%s]", pid, strings.TrimSpace(string(name)), strings.Join(list, ", ")))
	}
	return strings.Join(all, "; ")
}

func (c Cgroup) killEach(pids []int) error {
	for _, pid := range pids {
		if pid <= 0 {
			return fmt.Errorf("cgroup %s holds processes of another PID namespace: run dray in the host's", c.Path)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d in cgroup %s: %w", pid, c.Path, err)
		}
	}
	return nil
}

// stopForking prevents forks in the tree at dir until undo is called, so that
// killing its processes one by one ends. Without a pids controller the killing is
// just repeated.
//
// cgroup.kill is not used: after it, a kernel with kill sequence numbers (seen:
// 6.18) also kills whatever clone3 starts in that cgroup later.
func stopForking(dir string) (undo func()) {
	limit := filepath.Join(dir, "pids.max")
	old, err := os.ReadFile(limit)
	if err != nil {
		return func() {}
	}
	if strings.TrimSpace(string(old)) == "0" { // left by a `dray` that died in here
		old = []byte("max")
	}
	_ = writeExisting(limit, []byte("0"))
	return func() { _ = writeExisting(limit, old) }
}

// thaw wakes a v1 tree that something (docker pause) froze: a process frozen by v1
// dies of SIGKILL only after it is thawed.
func thaw(dir string) {
	if _, err := os.Stat(filepath.Join(dir, "freezer.state")); err != nil {
		return
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = writeExisting(filepath.Join(p, "freezer.state"), []byte("THAWED"))
		}
		return nil
	})
}

// removeEmptyParents removes what Create made above the cgroup, if unused: its
// parents, their weights, and the hierarchies that it mounted.
func removeEmptyParents(cgroup string) error {
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	for parent := path.Dir(cgroup); parent != "/"; parent = path.Dir(parent) {
		for _, h := range hs {
			// A parent in use, or gone, is left alone.
			_ = unix.Rmdir(filepath.Join(h.mount, parent))
		}
	}
	return errors.Join(lighten(cgroup, hs), releaseHierarchies(hs))
}

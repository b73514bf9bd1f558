// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/wire"
)

// groupRoot is the control group of all processes that the agent starts.
const groupRoot = groupMount + "/dray"

const groupMount = "/sys/fs/cgroup"

// plainGroup is the group of programs whose request names none.
const plainGroup = "plain"

var groupNumber atomic.Int64

// group is the control group of one program. Only a guest root that intends to
// can move its processes out.
type group struct {
	path string
	dir  *os.File
}

// newGroup makes the program's group, below the group with the limits.
func newGroup(r wire.Request) (*group, error) {
	name := r.Group
	if name == "" {
		name = plainGroup
	}
	parent := filepath.Join(groupRoot, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	for file, limit := range map[string]uint64{"memory.max": r.Memory, "pids.max": r.Pids} {
		if err := setLimit(parent, file, limit); err != nil {
			return nil, err
		}
	}
	g := &group{path: filepath.Join(parent, strconv.FormatInt(groupNumber.Add(1), 10))}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return nil, err
	}
	fd, err := unix.Open(g.path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, os.Remove(g.path))
	}
	g.dir = os.NewFile(uintptr(fd), g.path)
	return g, nil
}

// setLimit sets one limit of a group, after delegating the controllers.
func setLimit(group, file string, limit uint64) error {
	if limit == 0 {
		return nil
	}
	for _, dir := range []string{groupMount, groupRoot} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +pids"), 0); err != nil {
			return fmt.Errorf("hand down limits: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(group, file), []byte(strconv.FormatUint(limit, 10)), 0)
}

func (g *group) fd() int { return int(g.dir.Fd()) }

// kill kills every process in the group.
func (g *group) kill() {
	err := os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "dray-guest: kill a program's remaining processes: %v\n", err)
	}
}

// remove removes the group after its last process has ended.
func (g *group) remove() {
	g.dir.Close()
	for end := time.Now().Add(outputGrace); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if err := removeTree(g.path); err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		g.kill()
	}
}

// removeTree removes a group and the groups that a program made below it.
func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return unix.Rmdir(path)
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ThreadTime is the CPU time of a thread since it began.
type ThreadTime struct {
	ID     int // unique while the thread lives
	Name   string
	CPU    int           // on which it ran last
	Ran    time.Duration // on a CPU
	Waited time.Duration // for a CPU, while it could run
}

// Threads are the CPU times of all threads of the cgroup (proc(5); Documentation/scheduler/
// sched-stats.rst). A thread that ends meanwhile is left out.
func (c Cgroup) Threads() ([]ThreadTime, error) {
	pids, err := c.Processes()
	if err != nil {
		return nil, err
	}
	var all []ThreadTime
	for _, pid := range pids {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			return nil, err
		}
		for _, task := range tasks {
			if t, ok := threadTime(task); ok {
				all = append(all, t)
			}
		}
	}
	return all, nil
}

func threadTime(task string) (t ThreadTime, ok bool) {
	schedstat, err1 := os.ReadFile(filepath.Join(task, "schedstat"))
	stat, err2 := os.ReadFile(filepath.Join(task, "stat"))
	if err1 != nil || err2 != nil {
		return t, false
	}
	if _, err := fmt.Sscan(string(schedstat), (*int64)(&t.Ran), (*int64)(&t.Waited)); err != nil {
		return t, false
	}
	t.ID, t.Name, t.CPU, ok = parseThreadStat(string(stat))
	return t, ok
}

// parseThreadStat reads "id (name) state …". The name may contain anything.
func parseThreadStat(stat string) (id int, name string, cpu int, ok bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return 0, "", 0, false
	}
	id, err1 := strconv.Atoi(strings.TrimSpace(stat[:open]))
	// The first field after the name is number 3, and the processor number 39.
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 37 {
		return 0, "", 0, false
	}
	cpu, err2 := strconv.Atoi(fields[36])
	return id, stat[open+1 : end], cpu, err1 == nil && err2 == nil
}

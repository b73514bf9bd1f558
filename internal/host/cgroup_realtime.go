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
)

// fileRealtime is a v1 cgroup's real-time budget, in µs of each second and CPU, on a
// kernel with CONFIG_RT_GROUP_SCHED. Those of the children share it.
const fileRealtime = "cpu.rt_runtime_us"

// mostRealtime is the largest budget to give: threads that fail to sleep leave half of the CPU.
const mostRealtime = 500_000

// Realtime gives an existing cgroup a real-time budget until undo is called. Without one
// the kernel refuses its threads real-time priority. It does nothing if the kernel has no
// such budgets, or if the cgroup has one.
func (c Cgroup) Realtime() (undo func() error, err error) {
	var given []string // outermost first
	undo = func() error {
		var errs []error
		for _, file := range slices.Backward(given) {
			if err := writeExisting(file, []byte("0")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	hs, err := hierarchies()
	if err != nil {
		return undo, err
	}
	for _, h := range hs {
		root, limited := realtimeBudget(filepath.Join(h.mount, fileRealtime))
		if h.v2 || !h.has("cpu") || !limited {
			continue
		}
		value := []byte(strconv.Itoa(min(mostRealtime, root/2)))
		for _, dir := range append(ancestors(h.mount, c.Path)[1:], filepath.Join(h.mount, c.Path)) {
			file := filepath.Join(dir, fileRealtime)
			if budget, known := realtimeBudget(file); known && budget > 0 {
				continue
			}
			if err := writeExisting(file, value); err != nil {
				return undo, errors.Join(fmt.Errorf("give a control group a real-time budget: %w", err), undo())
			}
			given = append(given, file)
		}
	}
	return undo, nil
}

// realtimeBudget reads a budget; known is false if there is no such file, or no limit.
func realtimeBudget(file string) (micros int, known bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	micros, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return micros, err == nil && micros >= 0
}

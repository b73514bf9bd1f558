// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// weights is how a hierarchy's cpu controller states how much time a cgroup gets, relative
// to its siblings on the same CPU.
type weights struct {
	file           string
	usual, largest int
}

// Bounds of the kernel: MAX_SHARES (v1), CGROUP_WEIGHT_DFL and CGROUP_WEIGHT_MAX (v2).
var (
	weightsV1 = weights{"cpu.shares", 1024, 1 << 18}
	weightsV2 = weights{"cpu.weight", 100, 10_000}
)

// weighing is the hierarchy with the cpu controller.
func weighing(hs []hierarchy) (hierarchy, weights, bool) {
	i := slices.IndexFunc(hs, func(h hierarchy) bool { return h.has("cpu") })
	switch {
	case i < 0:
		return hierarchy{}, weights{}, false
	case hs[i].v2:
		return hs[i], weightsV2, true
	}
	return hs[i], weightsV1, true
}

// weigh gives an existing cgroup a share of the largest weight, and the largest to the
// cgroups above it: else the host's other programs would get as much as a whole chain.
// Weights are read back.
func (c Cgroup) weigh(share float64, hs []hierarchy) error {
	h, w, ok := weighing(hs)
	if !ok {
		return errors.New("no hierarchy has the cpu controller") // checkControllers has looked
	}
	for parent := path.Dir(c.Path); parent != "/"; parent = path.Dir(parent) {
		if err := w.set(filepath.Join(h.mount, parent), w.largest); err != nil {
			return err
		}
	}
	return w.set(filepath.Join(h.mount, c.Path), int(math.Round(share*float64(w.largest))))
}

func (w weights) set(dir string, value int) error {
	if err := writeExisting(filepath.Join(dir, w.file), []byte(strconv.Itoa(value))); err != nil {
		return fmt.Errorf("set the CPU weight: %w", err)
	}
	got, err := w.get(dir)
	if err == nil && got != value {
		err = fmt.Errorf("the kernel made %d of %d in %s", got, value, filepath.Join(dir, w.file))
	}
	return err
}

func (w weights) get(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, w.file))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// CPUWeight is a cgroup's weight for CPU time as the kernel states it, and the largest that
// there is. It is an error if the cgroup has none.
func (c Cgroup) CPUWeight() (weight, largest int, err error) {
	hs, err := hierarchies()
	if err != nil {
		return 0, 0, err
	}
	h, w, ok := weighing(hs)
	if !ok {
		return 0, 0, &Unsupported{What: "CPU weight", Why: "no mounted cgroup hierarchy has the controller cpu", Fix: controllerFix("cpu", hs)}
	}
	weight, err = w.get(filepath.Join(h.mount, c.Path))
	return weight, w.largest, err
}

// lighten gives the cgroups above a removed one their usual weight back, from the innermost,
// if all cgroups below them have it.
func lighten(cgroup string, hs []hierarchy) error {
	h, w, ok := weighing(hs)
	if !ok {
		return nil
	}
	for parent := path.Dir(cgroup); parent != "/"; parent = path.Dir(parent) {
		if err := w.lighten(filepath.Join(h.mount, parent)); err != nil {
			return err
		}
	}
	return nil
}

func (w weights) lighten(dir string) error {
	if !w.needless(dir) {
		return nil
	}
	release, err := lockHierarchies(unix.LOCK_EX) // see holdHierarchies
	if err != nil {
		return err
	}
	defer release()
	if !w.needless(dir) { // another `dray` has just given a share
		return nil
	}
	if err := w.set(dir, w.usual); err != nil && !gone(err) {
		return err
	}
	return nil
}

// needless reports whether dir has the largest weight, and no cgroup right below it a share.
func (w weights) needless(dir string) bool {
	weight, err := w.get(dir)
	return err == nil && weight == w.largest && !w.anyHeavy(dir)
}

// anyHeavy reports whether a cgroup right below dir has another weight than the usual one.
func (w weights) anyHeavy(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		weight, err := w.get(filepath.Join(dir, e.Name()))
		return e.IsDir() && err == nil && weight != w.usual
	})
}

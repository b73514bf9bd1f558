// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// diskOf is a function's disk use in addition to the host's own files, in bytes:
// its generated files, a machine's kernel and modules, and a Docker container's image.
func (r *Runner) diskOf(ctx context.Context, live *node.Live, c experiment.Cell) (int64, error) {
	mounts, err := mountPoints()
	if err != nil {
		return 0, err
	}
	sum, err := sizeBelow(filepath.Join(r.Node.StateDir, live.Chain.Name, "fn", client), mounts)
	if err != nil || c.Runtime != chain.RuntimeVM && c.Runtime != chain.RuntimeDocker {
		return sum, err
	}
	if keeper := r.imageKeeper(c.Runtime); keeper != nil {
		size, err := keeper.ImageSize(ctx, dockerImage(c))
		return sum + size, err
	}
	kernel, err := guest.FindKernel(ctx, guest.Generic)
	if err != nil {
		return 0, err
	}
	for _, path := range []string{kernel.Image, kernel.Modules} {
		part, err := sizeBelow(path, nil)
		if err != nil {
			return 0, err
		}
		sum += part
	}
	return sum, nil
}

// mountPoints are all mount points: files below them are not counted.
func mountPoints() (map[string]bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	points := map[string]bool{}
	for _, line := range strings.Split(string(table), "\n") {
		const point = 4
		if fields := strings.Fields(line); len(fields) > point {
			points[fields[point]] = true
		}
	}
	return points, nil
}

// sizeBelow sums the lengths of a tree's regular files, without mounts in it;
// files that vanish meanwhile count as 0.
func sizeBelow(root string, mounts map[string]bool) (sum int64, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if mounts[path] && path != root {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

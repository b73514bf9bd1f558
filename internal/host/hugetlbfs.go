// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MountHugePages mounts a new hugetlbfs on the directory, with 2 MiB pages, for
// that host user alone. Its pages are freed when it is unmounted (MountResource)
// and the last process that maps them ends.
func MountHugePages(dir string, user int) error {
	options := fmt.Sprintf("mode=0700,uid=%d,gid=%d,pagesize=2M", user, user)
	if err := mount("dray", dir, "hugetlbfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("mount a hugetlbfs on %s: %w", dir, err)
	}
	return nil
}

// ProbeHugePages reports whether the kernel has a hugetlbfs. It ignores how many
// pages are free now: the planner checks that.
func ProbeHugePages() error {
	const dir = "/sys/kernel/mm/hugepages"
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &Unsupported{What: "hugetlbfs", Why: "the kernel has no huge pages", Fix: "use a kernel with CONFIG_HUGETLBFS, as all distributions have"}
	}
	return err
}

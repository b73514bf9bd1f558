// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// What a directory of MountScratch holds at most: sockets, which take no bytes, and
// the locks and notes of a driver.
const (
	scratchBytes  = 256 << 10
	scratchInodes = 64
)

// MountScratch mounts a small file system in memory on a directory, which only that
// user of the host can enter. A function that may write to it can then fill neither
// the host's memory nor the file system of Drayage's state.
func MountScratch(dir string, uid int) error {
	return mountSmall(dir, fmt.Sprintf("mode=700,uid=%d,gid=0,size=%d,nr_inodes=%d", uid, scratchBytes, scratchInodes))
}

// MountLogs mounts a file system in memory, of at most that many bytes, on a directory
// for logs. Whatever is beyond it is lost: the process that writes does not wait.
func MountLogs(dir string, bytes int) error {
	return mountSmall(dir, fmt.Sprintf("mode=700,size=%d", bytes))
}

func mountSmall(dir, options string) error {
	if err := unix.Mount("dray", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", dir, err)
	}
	return nil
}

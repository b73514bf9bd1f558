// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

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

// ShowMount lets the parent of a container's first process see what is mounted on a
// directory: the parent makes the next container as well, and may have mounts of its own.
// What is mounted there goes with the directory.
func ShowMount(dir string, first int) error {
	parent, err := parentOf(first)
	if err != nil {
		return err
	}
	own := fmt.Sprintf("/proc/%d", parent)
	here, err := os.Stat(dir)
	if err != nil {
		return err
	}
	there, err := StatIn(own+"/root", dir)
	if err == nil && !os.SameFile(here, there) {
		err = mountIn(own+"/ns/mnt", dir)
	}
	if err != nil {
		return fmt.Errorf("show %s to process %d, which makes containers: %w", dir, parent, err)
	}
	return nil
}

// mountIn mounts what is mounted on a directory on the same path of a mount namespace.
func mountIn(namespace, dir string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("copy the mount: %w", err)
	}
	defer unix.Close(tree)
	ns, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", namespace, err)
	}
	defer unix.Close(ns)
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // setns refuses threads that share a directory
			return err
		}
		if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter %s: %w", namespace, err)
		}
		return unix.MoveMount(tree, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH)
	})
}

// MountLogs mounts a file system in memory, of at most that many bytes, on a directory
// for logs. Whatever is beyond it is lost: the process that writes does not wait.
func MountLogs(dir string, bytes int) error {
	return mountSmall(dir, fmt.Sprintf("mode=700,size=%d", bytes))
}

func mountSmall(dir, options string) error {
	if err := mount("dray", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", dir, err)
	}
	return nil
}

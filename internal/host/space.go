// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/units"
)

// CheckSpace is an error that names the file system of a directory if this process can write
// fewer than need bytes there, or make no file in it.
func CheckSpace(dir string, need uint64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("file system of %s: %w", dir, err)
	}
	blocks := fs.Bavail
	if os.Geteuid() == 0 {
		blocks = fs.Bfree // what ext4 reserves is for root
	}
	left := blocks * uint64(fs.Bsize)
	why, cause := "", error(unix.ENOSPC)
	switch {
	case fs.Flags&unix.ST_RDONLY != 0:
		why, cause = "is read-only", unix.EROFS
	case fs.Blocks > 0 && left < need: // a tmpfs without a limit has no blocks
		why = fmt.Sprintf("has %s left, and %s are needed", units.Bytes(left), units.Bytes(need))
	case fs.Files > 0 && fs.Ffree == 0:
		why = "has no inode left for another file"
	default:
		return nil
	}
	return Fault{Why: fmt.Sprintf("%s: the file system %s %s", dir, fileSystem(dir), why), Fix: "free some there, or set DRAY_STATE to another directory", Cause: cause}
}

// fileSystem is the type and the mount point of a directory's file system.
func fileSystem(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(dir))
	var last *mountinfo.Info
	for _, m := range mounts {
		if last == nil || len(m.Mountpoint) >= len(last.Mountpoint) {
			last = m
		}
	}
	if err != nil || last == nil {
		return "of it"
	}
	return strings.TrimSpace(last.FSType + " at " + last.Mountpoint)
}

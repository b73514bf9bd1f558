// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/step"
)

const (
	KindMount step.Kind = "mount" // a mount point that Drayage mounted on
	KindDir   step.Kind = "dir"   // a directory tree that Drayage made
)

// MountResource is whatever is mounted at path.
func MountResource(path string) step.Resource { return step.Resource{Kind: KindMount, Path: path} }

// DirResource is the directory tree at path.
func DirResource(path string) step.Resource { return step.Resource{Kind: KindDir, Path: path} }

// BindReadOnly binds the directory source on target, read-only and private, so
// that nothing can be changed or removed through it.
func BindReadOnly(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s on %s: %w", source, target, err)
	}
	if err := unix.Mount("", target, "", unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make %s private: %w", target, err)
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY)
	if err := unix.Mount("", target, "", flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// MountsAt lists the mount points at path and below it, oldest first, as this
// process's mount namespace has them.
func MountsAt(path string) ([]string, error) {
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(path))
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var points []string
	for _, info := range infos {
		points = append(points, info.Mountpoint)
	}
	return points, nil
}

// unmountAll unmounts everything mounted at exactly path. A path that is no
// mount point, or does not exist, is no error.
func unmountAll(path string) error {
	for {
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil:
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		default:
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}

// removeDir unmounts what is mounted below path and removes the tree. It
// refuses while a mount remains: a bind of the host's root may be there.
func removeDir(path string) error {
	points, err := MountsAt(path)
	if err != nil {
		return err
	}
	for _, point := range slices.Backward(points) {
		if err := unmountAll(point); err != nil {
			return err
		}
	}
	if points, err = MountsAt(path); err != nil {
		return err
	}
	if len(points) > 0 {
		return fmt.Errorf("%s still has %s mounted below it", path, points[0])
	}
	return os.RemoveAll(path)
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
)

const (
	KindMount step.Kind = "mount" // a mount point that Drayage mounted on
	KindDir   step.Kind = "dir"   // a directory tree that Drayage made
)

// MountResource is whatever is mounted at path.
func MountResource(path string) step.Resource { return step.Resource{Kind: KindMount, Path: path} }

// DirResource is the directory tree at path.
func DirResource(path string) step.Resource { return step.Resource{Kind: KindDir, Path: path} }

// mount is mount(2), whose ENOSPC is a limit.
func mount(source, target, kind string, flags uintptr, options string) error {
	err := unix.Mount(source, target, kind, flags, options)
	if errors.Is(err, unix.ENOSPC) {
		return Fault{Why: "there are too many mounts in this mount namespace", Fix: "raise the limit: sysctl fs.mount-max", Cause: err}
	}
	return err
}

// BindReadOnly binds the directory source on target, read-only and private, so that
// nothing can change through it. It is nosuid: programs with file capabilities,
// such as Debian's ping, then start without them. Otherwise the kernel refuses to
// start them in a process that lacks those capabilities.
func BindReadOnly(source, target string) error {
	if err := mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s on %s: %w", source, target, err)
	}
	if err := mount("", target, "", unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make %s private: %w", target, err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(target, &st); err != nil {
		return fmt.Errorf("bind %s on %s: %w", source, target, err)
	}
	// A remount drops every flag that it does not repeat.
	kept := uintptr(st.Flags) & (unix.MS_NODEV | unix.MS_NOEXEC)
	flags := unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | kept
	if err := mount("", target, "", flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// MountsAt lists the mount points at path and below it in this process's mount
// namespace, oldest first.
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

// unmountAll unmounts everything mounted at exactly path. It is no error if path is
// no mount point, or does not exist.
func unmountAll(path string) error {
	for {
		if err := makePrivate(path); err != nil {
			return err
		}
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

// makePrivate detaches the mounts at path and below from their peers. An unmount
// below a shared bind also applies to its source: a bind of the host's root would
// lose the host's mounts.
func makePrivate(path string) error {
	err := mount("", path, "", unix.MS_PRIVATE|unix.MS_REC, "")
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("make %s private: %w", path, err)
	}
	return nil
}

// removeDir unmounts everything below path and removes the tree. It never removes
// anything through a mount: it may be a bind of the host's root.
func removeDir(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return fmt.Errorf("refusing to remove directory %q: not an absolute, clean path", path)
	}
	// mountinfo lists real paths.
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	path = filepath.Join(parent, filepath.Base(path))
	points, err := MountsAt(path)
	if err != nil {
		return err
	}
	for _, point := range points {
		if err := makePrivate(point); err != nil {
			return err
		}
	}
	for _, point := range slices.Backward(points) {
		if err := unmountAll(point); err != nil {
			return err
		}
	}
	fd, err := unix.Open(parent, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", parent, err)
	}
	defer unix.Close(fd)
	return removeTree(fd, filepath.Base(path), path)
}

// removeTree removes name below the open directory parent. The kernel stops it at
// mount points and symbolic links; shown is name in errors.
func removeTree(parent int, name, shown string) error {
	err := unix.Unlinkat(parent, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR {
		return fmt.Errorf("remove %s: %w", shown, err)
	}
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if err == unix.ENOENT { // another process removes it, too
		return nil
	}
	if err == unix.EXDEV {
		return fmt.Errorf("remove %s: still a mount point", shown)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", shown, err)
	}
	dir := os.NewFile(uintptr(fd), shown)
	names, err := dir.Readdirnames(-1)
	for _, child := range names {
		err = errors.Join(err, removeTree(fd, child, filepath.Join(shown, child)))
	}
	dir.Close()
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil && err != unix.ENOENT {
		return fmt.Errorf("remove %s: %w", shown, err)
	}
	return nil
}

// NoExec reports whether the file system of a path forbids executing and loading
// files, like /run on most distributions.
func NoExec(path string) (bool, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return false, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return fs.Flags&unix.ST_NOEXEC != 0, nil
}

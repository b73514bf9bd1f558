// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// fds are file descriptors that are closed together.
type fds []int

func (f *fds) close() {
	for _, fd := range *f {
		unix.Close(fd)
	}
}

func (f *fds) keep(fd int) int {
	*f = append(*f, fd)
	return fd
}

// newMount creates a file system, not yet attached.
func (f *fds) newMount(kind string, attr int, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make %s: %w", kind, err)
	}
	defer unix.Close(fs)
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		if err := unix.FsconfigSetString(fs, key, value); err != nil {
			return -1, fmt.Errorf("make %s with %s: %w", kind, o, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("make %s: %w", kind, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return -1, fmt.Errorf("make %s: %w", kind, err)
	}
	return f.keep(fd), nil
}

// copyMount is a bind of a host path that is not attached yet.
func (f *fds) copyMount(source string, write bool) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("bind %s: %w", source, err)
	}
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !write {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	return f.keep(fd), setMountAttr(fd, attr)
}

func setMountAttr(fd int, attr uint64) error {
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("set attributes of a mount: %w", err)
	}
	return nil
}

// open opens all that the view shows, before we leave the host's root.
func (v *View) open(f *fds) error {
	for _, dir := range slices.Concat(v.Hidden, v.Shown, v.Parts) {
		if rel, err := filepath.Rel(v.Source, dir); err != nil || rel == "." || !filepath.IsLocal(rel) {
			return fmt.Errorf("view of %s: %q is not below it", v.Source, dir)
		}
	}
	for _, dir := range v.Shown {
		shut, err := closed(dir)
		if err != nil {
			return err
		}
		if shut != "" && !slices.Contains(v.Hidden, shut) {
			v.Hidden = append(slices.Clone(v.Hidden), shut)
		}
	}
	v.copies = map[string][]int{}
	for _, source := range slices.Concat([]string{v.Source}, v.Parts, v.Shown) {
		fd, err := f.copyMount(source, v.Write)
		if err != nil {
			return err
		}
		v.copies[source] = append(v.copies[source], fd)
	}
	return nil
}

// take returns an unused copy of a source: a mount attaches only once.
func (v View) take(source string) int {
	fd := v.copies[source][0]
	v.copies[source] = v.copies[source][1:]
	return fd
}

// attach mounts the view below the root.
func (v View) attach(root int, f *fds) error {
	top := v.take(v.Source)
	dir, err := isDirectory(top)
	if err != nil {
		return fmt.Errorf("%s: %w", v.Source, err)
	}
	if err := attach(top, root, v.Target, dir, f); err != nil {
		return err
	}
	for _, part := range v.Parts {
		if err := attach(v.take(part), top, v.below(part), true, f); err != nil {
			return err
		}
	}
	covers := map[string]int{}
	for _, hidden := range v.Hidden {
		if err := v.cover(covers, top, v.below(hidden), f); err != nil {
			return err
		}
	}
	for _, shown := range v.Shown {
		if err := v.makeRoom(covers, top, v.below(shown), f); err != nil {
			return err
		}
		if err := attach(v.take(shown), top, v.below(shown), true, f); err != nil {
			return err
		}
	}
	for _, cover := range covers {
		if err := setMountAttr(cover, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	return nil
}

// below converts a host path to one below the view's top.
func (v View) below(p string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(p, v.Source), "/")
}

// cover hides a directory, if it exists, and adds the cover mount to covers.
func (v View) cover(covers map[string]int, top int, dir string, f *fds) error {
	at, err := openBelow(top, dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("hide %s: %w", dir, err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fmt.Errorf("hide %s: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	cover, err := f.newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, fmt.Sprintf("mode=%o", st.Mode&0o7777|0o555), "size=64k")
	if err != nil {
		return err
	}
	if err := mountOn(cover, at); err != nil {
		return fmt.Errorf("hide %s: %w", dir, err)
	}
	covers[dir] = cover
	return nil
}

// makeRoom covers the nearest ancestor of a missing directory. It is missing
// because the view does not show its file system, such as one at /home.
func (v View) makeRoom(covers map[string]int, top int, dir string, f *fds) error {
	if at, err := openBelow(top, dir); err == nil {
		return unix.Close(at)
	}
	for dir = path.Dir(dir); dir != "/"; dir = path.Dir(dir) {
		at, err := openBelow(top, dir)
		if err != nil {
			continue
		}
		unix.Close(at)
		for covered := range covers {
			if dir == covered || strings.HasPrefix(dir, covered+"/") {
				return nil
			}
		}
		return v.cover(covers, top, dir, f)
	}
	return nil
}

// attach mounts at a path below the root, and creates it if missing.
func attach(mount, root int, target string, dir bool, f *fds) error {
	if err := mkdirAll(root, path.Dir(target)); err != nil {
		return err
	}
	if dir {
		if err := mkdirAll(root, target); err != nil {
			return err
		}
	} else {
		fd, err := unix.Openat2(root, target, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDONLY | unix.O_CLOEXEC, Mode: 0o644, Resolve: unix.RESOLVE_IN_ROOT})
		if err != nil {
			return fmt.Errorf("make %s: %w", target, err)
		}
		unix.Close(fd)
	}
	at, err := openBelow(root, target)
	if err != nil {
		return fmt.Errorf("mount on %s: %w", target, err)
	}
	f.keep(at)
	if err := mountOn(mount, at); err != nil {
		return fmt.Errorf("mount on %s: %w", target, err)
	}
	return nil
}

func mountOn(mount, at int) error {
	return unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// openBelow resolves a path as a process with that root would: no link escapes it.
func openBelow(root int, p string) (int, error) {
	return unix.Openat2(root, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
}

// mkdirAll makes a directory below the root, and its parents.
func mkdirAll(root int, dir string) error {
	if dir == "/" || dir == "." {
		return nil
	}
	if fd, err := openBelow(root, dir); err == nil {
		return unix.Close(fd)
	}
	if err := mkdirAll(root, path.Dir(dir)); err != nil {
		return err
	}
	parent, err := openBelow(root, path.Dir(dir))
	if err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	defer unix.Close(parent)
	err = unix.Mkdirat(parent, path.Base(dir), 0o755)
	if err == nil { // whatever the umask: the confined user is unprivileged
		err = unix.Fchmodat(parent, path.Base(dir), 0o755, 0)
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	return nil
}

func isDirectory(fd int) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

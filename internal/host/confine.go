// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Confinement is the view that an unprivileged process with its own mount namespace
// has of the host: a read-only root with Views, /proc with only its own processes,
// and Devices. It has no capability and cannot gain one.
type Confinement struct {
	User    int // uid and gid on the host; not root
	Views   []View
	Links   map[string]string // symbolic links of the root, by name
	Devices []string          // device nodes of the host that it may read and write; missing ones are skipped
}

// View is a file or directory of the host that a confined process sees, without
// mounts below it. Device nodes there cannot be opened.
type View struct {
	Source, Target string // absolute
	Write          bool
	// Parts are visible mount points below Source.
	Parts []string
	// Hidden are directories that appear empty. Shown are directories that stay
	// visible below a hidden one, or below one that other users cannot enter. Both
	// are paths below Source.
	Hidden, Shown []string

	copies map[string][]int // mounts to attach, by source: one per use
}

// StartConfined is Start for a confined process. All that it makes is in the
// process's own mount namespace and ends with it.
func (p Place) StartConfined(cmd *exec.Cmd, c Confinement) error {
	if c.User <= 0 {
		return fmt.Errorf("start confined: user %d", c.User)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.User), Gid: uint32(c.User)}
	if err := p.start(cmd, c.enter); err != nil {
		return fmt.Errorf("start %s confined: %w", path.Base(cmd.Path), err)
	}
	return nil
}

// enter confines the calling thread, which ends soon, and its children.
func (c Confinement) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWIPC); err != nil {
		return fmt.Errorf("unshare mount namespace: %w", err)
	}
	if err := mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	var open fds
	defer open.close()
	for i := range c.Views {
		if err := c.Views[i].open(&open); err != nil {
			return err
		}
	}
	root, err := open.newMount("tmpfs", unix.MOUNT_ATTR_NOSUID, "mode=755", "size=1m")
	if err != nil {
		return err
	}
	// Any directory can hold it until it becomes the root: everything needed from
	// the host is already open.
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/usr", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}
	if err := c.furnish(root, &open); err != nil {
		return err
	}
	if err := setMountAttr(root, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	if err := pivot(root); err != nil {
		return err
	}
	return renounce()
}

// furnish attaches everything visible below the root.
func (c Confinement) furnish(root int, open *fds) error {
	for name, target := range c.Links {
		if err := unix.Symlinkat(target, root, name); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	for _, v := range c.Views {
		if err := v.attach(root, open); err != nil {
			return err
		}
	}
	proc, err := open.newMount("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, "hidepid=invisible", "subset=pid")
	if err != nil {
		return err
	}
	if err := attach(proc, root, "/proc", true, open); err != nil {
		return err
	}
	return c.makeDevices(root)
}

// makeDevices makes nodes that the user owns, whatever the host's mode.
func (c Confinement) makeDevices(root int) error {
	if err := mkdirAll(root, "/dev"); err != nil {
		return err
	}
	for _, device := range c.Devices {
		name, below := strings.CutPrefix(device, "/dev/")
		if !below || strings.Contains(name, "/") {
			return fmt.Errorf("device %s: it is not right below /dev", device)
		}
		var st unix.Stat_t
		if err := unix.Fstatat(unix.AT_FDCWD, device, &st, 0); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			return fmt.Errorf("device %s: %w", device, err)
		}
		err := unix.Mknodat(root, "dev/"+name, unix.S_IFCHR|0o600, int(st.Rdev))
		if err == nil {
			err = unix.Fchownat(root, "dev/"+name, c.User, c.User, unix.AT_SYMLINK_NOFOLLOW)
		}
		if err != nil {
			return fmt.Errorf("make device %s: %w", device, err)
		}
	}
	return nil
}

// pivot makes the mount the root of this thread's mount namespace, and the only one.
func pivot(root int) error {
	old, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(old)
	for _, do := range []func() error{
		func() error { return unix.Fchdir(root) },
		func() error { return unix.PivotRoot(".", ".") },
		func() error { return unix.Fchdir(old) },
		func() error { return unix.Unmount(".", unix.MNT_DETACH) },
		func() error { return unix.Chdir("/") },
	} {
		if err := do(); err != nil {
			return fmt.Errorf("change the root: %w", err)
		}
	}
	return nil
}

// renounce permanently gives up all privileges that execve could grant.
func renounce() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // past the last one
			return nil
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
}

// ProgramMounts are separate file systems, such as a partition at /usr, that hold
// the host's programs: a bind of "/" does not include them.
func ProgramMounts() ([]string, error) {
	var parts []string
	for _, dir := range []string{"/usr", "/opt"} {
		points, err := MountsAt(dir)
		if err != nil {
			return nil, err
		}
		for _, point := range points {
			if point == dir || strings.HasPrefix(point, dir+"/") {
				parts = append(parts, point)
			}
		}
	}
	return parts, nil
}

// closed is the topmost directory of a path that other users cannot enter; "" if
// there is none.
func closed(dir string) (string, error) {
	var at string
	for dir = path.Clean(dir); dir != "/"; dir = path.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		if info.Mode().Perm()&0o001 == 0 {
			at = dir
		}
	}
	return at, nil
}

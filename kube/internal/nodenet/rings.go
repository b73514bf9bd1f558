// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/bpf"
)

// ringsGroup is the control group, below that of the process, whose packet sockets have
// few options.
const ringsGroup = "dray-net"

// refuseRings makes the kernel refuse packet rings and most other options (see
// bpf.LimitPacketOptions) on every packet socket that this process opens from now on. It
// enters a control group (v2) for that.
func refuseRings() error {
	tree, err := mountCgroup2()
	if err != nil {
		return fmt.Errorf("cgroup v2: %w", err)
	}
	defer unix.Close(tree)
	own, err := ownCgroup2()
	if err != nil {
		return err
	}
	group, err := enterGroup(tree, own)
	if err != nil {
		return fmt.Errorf("control group %s: %w", own, err)
	}
	defer unix.Close(group)
	if err := bpf.LimitPacketOptions(group); err != nil {
		return err
	}
	return bpf.CheckPacketOptions()
}

// mountCgroup2 returns the root of cgroup v2, mounted nowhere.
func mountCgroup2() (int, error) {
	fs, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}

// ownCgroup2 is the path of this process's control group (v2), without the slash.
func ownCgroup2() (string, error) {
	file, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "0::/"); ok {
			return path, nil
		}
	}
	return "", errors.New("this process is in no control group (v2)")
}

// enterGroup moves the process to a group below its own, and opens that. A process that
// is in such a group already stays.
func enterGroup(tree int, own string) (int, error) {
	path := strings.TrimSuffix(own, "/")
	if path != ringsGroup && !strings.HasSuffix(path, "/"+ringsGroup) {
		path = strings.TrimPrefix(path+"/"+ringsGroup, "/")
	}
	if err := unix.Mkdirat(tree, path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return -1, err
	}
	group, err := unix.Openat(tree, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	procs, err := unix.Openat(group, "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(procs, []byte("0"))
		_ = unix.Close(procs)
	}
	if err != nil {
		_ = unix.Close(group)
		return -1, err
	}
	return group, nil
}

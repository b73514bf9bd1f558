// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ringsGroup is the control group, below that of the process, whose sockets cannot have
// packet rings.
const ringsGroup = "dray-net"

// refuseRings makes the kernel refuse packet rings (packet(7), PACKET_RX_RING) on every
// socket that this process opens from now on, even if another process holds it later. No
// control group is charged for a ring's memory. The program is attached to a control group (v2) that
// the process enters; a socket belongs to the group of its maker for good.
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
	program, err := loadRefusal()
	if err != nil {
		return fmt.Errorf("load a program for control groups: %w", err)
	}
	defer unix.Close(program)
	if err := attach(group, program); err != nil {
		return fmt.Errorf("attach a program to a control group: %w", err)
	}
	return checkRefusal()
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

// loadRefusal loads a program that refuses PACKET_RX_RING and PACKET_TX_RING.
func loadRefusal() (int, error) {
	const (
		loadWord, jumpUnequal, jumpEqual, move, exit = 0x61, 0x55, 0x15, 0xb7, 0x95
		result, context, field                       = 0, 1, 2
		level, option                                = 24, 28 // offsets in struct bpf_sockopt
	)
	program := []insn{
		{loadWord, field | context<<4, level, 0},
		{jumpUnequal, field, 3, unix.SOL_PACKET}, // to: permit
		{loadWord, field | context<<4, option, 0},
		{jumpEqual, field, 3, unix.PACKET_RX_RING}, // to: refuse
		{jumpEqual, field, 2, unix.PACKET_TX_RING},
		{move, result, 0, 1}, // permit
		{exit, 0, 0, 0},
		{move, result, 0, 0}, // refuse
		{exit, 0, 0, 0},
	}
	return loadProgram(unix.BPF_PROG_TYPE_CGROUP_SOCKOPT, unix.BPF_CGROUP_SETSOCKOPT, "dray_no_rings", program)
}

// attach makes the program the only one of ours at the group: one attached with this
// flag replaces an earlier one.
func attach(group, program int) error {
	attr := struct{ group, program, kind, flags uint32 }{uint32(group), uint32(program), unix.BPF_CGROUP_SETSOCKOPT, unix.BPF_F_ALLOW_OVERRIDE}
	_, err := bpf(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}

// checkRefusal asks for a ring, and fails if there is one.
func checkRefusal() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ring := unix.TpacketReq{Block_size: 4096, Block_nr: 1, Frame_size: 2048, Frame_nr: 2}
	err = unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &ring)
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a packet ring was not refused: %w", err)
	}
	return nil
}

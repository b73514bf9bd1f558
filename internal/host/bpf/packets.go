// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// packetIgnoreOutgoing is PACKET_IGNORE_OUTGOING of linux/if_packet.h.
const packetIgnoreOutgoing = 23

// packetOptions are the options of packet sockets (packet(7)) that stay allowed: those
// that libdray and the makers of its sockets set.
var packetOptions = []int32{unix.PACKET_AUXDATA, packetIgnoreOutgoing, unix.PACKET_FANOUT}

// LimitPacketOptions makes the kernel refuse all other options of packet sockets that
// processes of a control group (v2, an open directory) open from now on, even if another
// process holds the socket later: a socket belongs to its maker's group for good. Rings
// and memberships take memory for which no control group is charged, and need no
// capability.
func LimitPacketOptions(group int) error {
	program, err := loadLimit()
	if err != nil {
		return fmt.Errorf("load a program for control groups: %w", err)
	}
	defer unix.Close(program)
	// With this flag it replaces an earlier one of ours.
	attr := struct{ group, program, kind, flags uint32 }{uint32(group), uint32(program), unix.BPF_CGROUP_SETSOCKOPT, unix.BPF_F_ALLOW_OVERRIDE}
	if _, err := Call(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return fmt.Errorf("attach a program to a control group: %w", err)
	}
	return nil
}

func loadLimit() (int, error) {
	const (
		loadWord, jumpUnequal, jumpEqual, move, exit = 0x61, 0x55, 0x15, 0xb7, 0x95
		result, context, field                       = 0, 1, 2
		level, option                                = 24, 28 // offsets in struct bpf_sockopt
	)
	answer := func(permit int32) []Instruction {
		return []Instruction{{move, result, 0, permit}, {exit, 0, 0, 0}}
	}
	permit := int16(len(packetOptions) + len(answer(0))) // from the first comparison of options to the answer 1
	program := []Instruction{
		{loadWord, field | context<<4, level, 0},
		{jumpUnequal, field, permit + 1, unix.SOL_PACKET},
		{loadWord, field | context<<4, option, 0},
	}
	for i, allowed := range packetOptions {
		program = append(program, Instruction{jumpEqual, field, permit - int16(i) - 1, allowed})
	}
	program = append(append(program, answer(0)...), answer(1)...)
	return Load(unix.BPF_PROG_TYPE_CGROUP_SOCKOPT, unix.BPF_CGROUP_SETSOCKOPT, "dray_packets", program)
}

// CheckPacketOptions asks for a packet ring, and fails if this process gets one.
func CheckPacketOptions() error {
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

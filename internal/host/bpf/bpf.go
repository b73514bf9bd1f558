// SPDX-License-Identifier: Apache-2.0

// Package bpf loads programs of eBPF into the kernel, and has the one that limits what
// the holder of a packet socket can do.
package bpf

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Instruction is an instruction of eBPF (RFC 9669).
type Instruction struct {
	Op       uint8
	Regs     uint8 // destination, source << 4
	Offset   int16
	Constant int32
}

// Load loads a program into the kernel. attachTo matters only for kinds that are
// attached in several ways.
func Load(kind, attachTo uint32, name string, code []Instruction) (int, error) {
	license := []byte("Apache-2.0\x00")
	attr := struct {
		kind, count              uint32
		program, license         uint64
		logLevel, logSize        uint32
		log                      uint64
		kernel, flags            uint32
		name                     [16]byte
		interfaceIndex, attachTo uint32
	}{
		kind: kind, count: uint32(len(code)), attachTo: attachTo,
		program: uint64(uintptr(unsafe.Pointer(&code[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	copy(attr.name[:len(attr.name)-1], name)
	fd, err := Call(unix.BPF_PROG_LOAD, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	return fd, err
}

// Call is bpf(2).
func Call(command int, attr unsafe.Pointer, size uintptr) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

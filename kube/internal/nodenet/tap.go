// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/bpf"
	"github.com/drayage/dray/kube/internal/probe"
)

// tap counts the packets at a port, and stamps probes there. It is a packet
// socket with a program in the kernel, which lets only the probes of the other port
// through. Probes leave by another socket, because a socket does not see its own packets.
// What a tap has seen, the kernel does not count as dropped by the interface, although no
// protocol takes probes.
type tap struct {
	socket, sender, records, program int
	buffer                           []byte
}

// tapBuffer bounds how much kernel memory waiting probes can use, even forged ones.
const tapBuffer = 64 << 10

// tapSockets is how many packet sockets a tap has.
const tapSockets = 2

// openTap opens a tap on the interface of a namespace.
func openTap(at host.Netns, device string) (t *tap, err error) {
	t = &tap{socket: -1, sender: -1, records: -1, program: -1, buffer: make([]byte, 2048)}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.records, err = newRecords(); err != nil {
		return t, fmt.Errorf("a map of stamps: %w", err)
	}
	if t.program, err = loadTap(t.records); err != nil {
		return t, fmt.Errorf("load a program that stamps probes: %w", err)
	}
	link, err := at.ReadLink(device)
	if err != nil {
		return t, err
	}
	return t, at.Do(func() error { return t.open(link.Index) })
}

// open opens the sockets; the caller's thread is in the namespace.
func (t *tap) open(index int) (err error) {
	for _, fd := range []*int{&t.socket, &t.sender} {
		if *fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
	}
	if err := unix.SetsockoptInt(t.socket, unix.SOL_SOCKET, unix.SO_RCVBUF, tapBuffer); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(t.socket, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, t.program); err != nil {
		return err
	}
	every := int(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL)))
	if err := unix.Bind(t.socket, &unix.SockaddrLinklayer{Protocol: uint16(every), Ifindex: index}); err != nil {
		return err
	}
	return unix.Bind(t.sender, &unix.SockaddrLinklayer{Ifindex: index})
}

func (t *tap) close() {
	for _, fd := range []int{t.socket, t.sender, t.program, t.records} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// step takes what probes have come, sends the next one, and notes what the kernel says of each.
func (t *tap) step(s *probe.Session) error {
	for range maxProbes {
		n, err := unix.Read(t.socket, t.buffer)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENETDOWN) {
			break
		}
		if err != nil {
			return err
		}
		if n < probe.HeaderSize {
			continue
		}
		if came, ok := t.stamp(binary.BigEndian.Uint32(t.buffer[probe.OffsetSeq:]), true); ok {
			s.Received(t.buffer[:n], came)
		}
	}
	packet, seq := s.Next()
	if _, err := unix.Write(t.sender, packet); err == nil { // a network that takes none loses them
		if left, ok := t.stamp(seq, false); ok {
			s.Sent(left)
		}
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	s.Tick(uint64(now.Nano()))
	return nil
}

// maxProbes bounds the work of one step. A peer that sends more loses them.
const maxProbes = 16

// record is what the program notes of a probe: how many packets and bytes had passed by then.
type record struct{ seq, ns, sent, received, sentBytes, receivedBytes uint64 }

// stamp is what the program noted of a probe; false: another one has replaced it.
func (t *tap) stamp(seq uint32, received bool) (probe.Stamp, bool) {
	key := slotOf(seq, received)
	var r record
	attr := struct {
		records    uint32
		_          uint32
		key, value uint64
		flags      uint64
	}{records: uint32(t.records), key: uint64(uintptr(unsafe.Pointer(&key))), value: uint64(uintptr(unsafe.Pointer(&r)))}
	_, err := bpf.Call(unix.BPF_MAP_LOOKUP_ELEM, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(&key)
	runtime.KeepAlive(&r)
	s := probe.Stamp{Seq: seq, NS: r.ns, Count: r.sent, Bytes: r.sentBytes}
	if received {
		s.Count, s.Bytes = r.received, r.receivedBytes
	}
	return s, err == nil && r.seq == uint64(seq)
}

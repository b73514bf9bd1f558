// SPDX-License-Identifier: Apache-2.0

package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// packetIgnoreOutgoing is PACKET_IGNORE_OUTGOING of linux/if_packet.h (4.20):
// a socket does not receive packets sent through its interface.
const packetIgnoreOutgoing = 23

// receiveBuffer is the size of a socket's queue, in bytes of kernel memory.
const receiveBuffer = 8 << 20

// counters count frames received from an interface.
type counters struct {
	passed, dropped atomic.Uint64
}

func (c *counters) String() string {
	return fmt.Sprintf("%d frames passed, %d dropped", c.passed.Load(), c.dropped.Load())
}

// socket is a non-blocking packet socket on one interface. A virtio header
// (linux/virtio_net.h) precedes each frame and carries the unfinished
// offloads: segmentation and checksums.
type socket struct {
	name string
	fd   int
	counters
}

// openSocket opens a packet socket on an interface. With a MAC, it receives only
// frames to that address and to groups, and sets the interface to accept them.
func openSocket(ns host.Netns, name string, mac net.HardwareAddr) (*socket, error) {
	s := &socket{name: name, fd: -1}
	link, err := ns.ReadLink(name)
	if err == nil {
		err = ns.Do(func() error { return s.open(link.Index, mac) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket on %s in %s: %w", name, ns, err), s.close())
	}
	return s, nil
}

func (s *socket) open(index int, mac net.HardwareAddr) (err error) {
	// Protocol 0: queue nothing before the filter is attached.
	s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	for _, option := range []int{packetIgnoreOutgoing, unix.PACKET_VNET_HDR, unix.PACKET_AUXDATA} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, option, 1); err != nil {
			return fmt.Errorf("option %d: %w", option, err)
		}
	}
	// Best effort: without the privilege, the host's limit applies.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	if mac != nil {
		if err := s.accept(index, mac); err != nil {
			return err
		}
	}
	return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: index})
}

// accept limits the socket to frames for the port, and makes the interface
// accept them. The port never receives the host's own traffic.
func (s *socket) accept(index int, mac net.HardwareAddr) error {
	filter := portFilter(mac)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	// If a driver cannot filter, a unicast membership makes it promiscuous.
	unicast := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_UNICAST, Alen: uint16(len(mac))}
	copy(unicast.Address[:], mac)
	groups := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_ALLMULTI}
	for _, m := range []*unix.PacketMreq{&unicast, &groups} {
		if err := unix.SetsockoptPacketMreq(s.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, m); err != nil {
			return fmt.Errorf("membership %d: %w", m.Type, err)
		}
	}
	return nil
}

// portFilter accepts frames to that address and to groups (classic BPF).
func portFilter(mac net.HardwareAddr) []unix.SockFilter {
	const whole = 0x40000
	high, low := binary.BigEndian.Uint32(mac[:4]), uint32(binary.BigEndian.Uint16(mac[4:]))
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 1, Jt: 4}, // group: accept
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: high, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: low, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: whole},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

func networkOrder(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// receive reads one frame into f and returns its length on the wire, with the
// header. A frame longer than f is truncated.
func (s *socket) receive(f *frame) (int, error) {
	f.msg.SetControllen(len(f.control))
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&f.msg)), unix.MSG_TRUNC)
	if errno != 0 {
		return 0, errno
	}
	if int(n) <= f.capacity() {
		return f.restoreTag(int(n)), nil
	}
	return int(n), nil
}

// gone reports whether the interface has been deleted.
func (s *socket) gone() bool {
	name, err := unix.Getsockname(s.fd)
	address, ok := name.(*unix.SockaddrLinklayer)
	return err != nil || !ok || address.Ifindex <= 0
}

func (s *socket) close() error {
	if s.fd < 0 {
		return nil
	}
	return unix.Close(s.fd)
}

// stopper wakes goroutines that wait for sockets.
type stopper struct{ fd int }

func newStop() (*stopper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return &stopper{fd}, err
}

func (s *stopper) signal() { _, _ = unix.Write(s.fd, binary.NativeEndian.AppendUint64(nil, 1)) }

func (s *stopper) close() { _ = unix.Close(s.fd) }

// wait blocks until the socket is ready or the relay stops.
func (s *stopper) wait(fd int, events int16) (stopped bool, err error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(s.fd), Events: unix.POLLIN}}
	_, err = unix.Poll(fds, -1)
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return fds[1].Revents != 0, err
}

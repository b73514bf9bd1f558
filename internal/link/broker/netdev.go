// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// Constants of linux/if_packet.h.
const (
	packetIgnoreOutgoing = 23     // a socket ignores packets sent through its interface
	fanoutIgnoreOutgoing = 0x4000 // so does a group
	fanoutUniqueID       = 0x2000 // the kernel chooses the number of the group
)

// PacketSockets opens one packet socket per queue on an end's interface, in its
// namespace. Frames of one flow always come to the same queue. The caller closes them.
func PacketSockets(e *End, queues int) (fds []int, err error) {
	return Watched{}.PacketSockets(e, queues)
}

// Watched is a namespace in which someone else watches the port's interface as well.
type Watched struct {
	// Filter passes the frames that are the port's; none: it gets all.
	Filter []unix.SockFilter
	// Sockets are how many packet sockets the watcher has there.
	Sockets int
}

// PacketSockets opens one packet socket per queue, each with the filter from its first frame on.
func (w Watched) PacketSockets(e *End, queues int) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
			fds, err = nil, fmt.Errorf("packet sockets on %s in namespace %q: %w", e.Interface, e.Netns, err)
		}
	}()
	ns := host.Netns{Path: e.Netns}
	device, err := ns.ReadLink(e.Interface)
	if err != nil {
		return nil, err
	}
	err = ns.Do(func() error {
		if err := checkHeldSockets(e, w.Sockets); err != nil {
			return err
		}
		group := 0
		for range queues {
			fd, err := packetSocket(device.Index, w.Filter)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
			if queues == 1 {
				continue
			}
			if group, err = joinFanout(fd, group); err != nil {
				return fmt.Errorf("fan-out over %d queues: %w", queues, err)
			}
		}
		return nil
	})
	return fds, err
}

// checkHeldSockets is an error if an end still holds too many sockets of
// earlier generations. Each costs memory, and time per frame. It counts all
// sockets in the namespace, which is the port's own, but for a number of others.
func checkHeldSockets(e *End, others int) error {
	if e.Netns == "" {
		return nil // the host's namespace: others may have sockets in it
	}
	b, err := os.ReadFile("/proc/thread-self/net/packet")
	if err != nil {
		return err
	}
	if n := bytes.Count(b, []byte("\n")) - 1; n >= others+heldMax*e.queues() { // the first line is a heading
		return fmt.Errorf("%d sockets of earlier generations are still open", n)
	}
	return nil
}

// packetBuffer bounds what a packet socket buffers each way, in bytes. The
// kernel counts the memory of a frame, up to twice its length.
const packetBuffer = 4 << 20

func packetSocket(device int, filter []unix.SockFilter) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	// Best effort: an end also ignores its own packets.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, packetIgnoreOutgoing, 1)
	// The kernel's default of 208 KiB holds 20 jumbo frames, or one millisecond.
	for _, option := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, packetBuffer); err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
	}
	if len(filter) > 0 {
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: device}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// joinFanout adds a socket to a group, and returns the group; group 0 creates one.
func joinFanout(fd, group int) (int, error) {
	kind := unix.PACKET_FANOUT_HASH | fanoutIgnoreOutgoing
	if group == 0 {
		kind |= fanoutUniqueID
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, group&0xffff|kind<<16); err != nil {
		return 0, err
	}
	joined, err := unix.GetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT)
	return joined & 0xffff, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

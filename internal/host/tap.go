// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tapBuffer is how many bytes of packets the kernel may buffer.
const tapBuffer = 16 << 20

// PacketTap captures an interface's packets in both directions, passively.
type PacketTap struct {
	fd      int
	dropped uint64
	control []byte
}

// TappedPacket is one captured packet.
type TappedPacket struct {
	Time   int64 // ns since 1970
	Length int   // original bytes, perhaps more than Kept
	Kept   int   // bytes
	Sent   bool  // by the interface's host; otherwise it was received
}

// OpenPacketTap captures on an interface of a network namespace what a classic BPF program
// accepts; without one, everything.
func OpenPacketTap(n Netns, name string, filter []unix.SockFilter) (*PacketTap, error) {
	t := &PacketTap{fd: -1, control: make([]byte, 512)}
	link, err := n.ReadLink(name)
	if err != nil {
		return nil, err
	}
	err = n.Do(func() error {
		// No protocol yet: nothing arrives before bind.
		t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		return t.bind(link.Index, filter)
	})
	if err != nil {
		if t.fd >= 0 {
			unix.Close(t.fd)
		}
		return nil, fmt.Errorf("watch interface %s in %s: %w", name, n, err)
	}
	return t, nil
}

func (t *PacketTap) bind(index int, filter []unix.SockFilter) error {
	if len(filter) > 0 {
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if err := unix.SetsockoptSockFprog(t.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
			return fmt.Errorf("attach a filter: %w", err)
		}
	}
	return errors.Join(
		unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer),
		unix.SetsockoptInt(t.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(t.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.Bind(t.fd, &unix.SockaddrLinklayer{Protocol: bigEndian16(unix.ETH_P_ALL), Ifindex: index}),
	)
}

func bigEndian16(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// Close ends it.
func (t *PacketTap) Close() error { return unix.Close(t.fd) }

// vlanTag is a tag that the kernel strips and reports separately.
const (
	vlanTag   = 4
	addresses = 12 // bytes of a frame before its tag
)

// Read returns the next packet, with its VLAN tag; false if there is none now. It
// truncates packets to fit buf, which needs 16 bytes at least.
func (t *PacketTap) Read(buf []byte) (TappedPacket, bool, error) {
	// Leave room for the tag, so that inserting it moves only 12 bytes.
	n, controlLength, _, from, err := unix.Recvmsg(t.fd, buf[vlanTag:], t.control, unix.MSG_TRUNC)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return TappedPacket{}, false, nil
	}
	if err != nil {
		return TappedPacket{}, false, err
	}
	p := TappedPacket{Length: n, Kept: min(n, len(buf)-vlanTag)}
	if ll, ok := from.(*unix.SockaddrLinklayer); ok {
		p.Sent = ll.Pkttype == unix.PACKET_OUTGOING
	}
	tag, tagged, err := t.readControl(controlLength, &p)
	if err != nil {
		return TappedPacket{}, false, err
	}
	if tagged && p.Kept >= addresses {
		copy(buf, buf[vlanTag:vlanTag+addresses])
		copy(buf[addresses:], tag[:])
		p.Kept += vlanTag
		p.Length += vlanTag
	} else {
		copy(buf, buf[vlanTag:vlanTag+p.Kept])
	}
	return p, true, nil
}

// readControl takes the time and VLAN tag from control messages.
func (t *PacketTap) readControl(length int, p *TappedPacket) (tag [vlanTag]byte, tagged bool, err error) {
	messages, err := unix.ParseSocketControlMessage(t.control[:length])
	if err != nil {
		return tag, false, err
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})):
			p.Time = (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0]))
			tagged = aux.Status&unix.TP_STATUS_VLAN_VALID != 0
			protocol := uint16(unix.ETH_P_8021Q)
			if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
				protocol = aux.Vlan_tpid
			}
			binary.BigEndian.PutUint16(tag[:], protocol)
			binary.BigEndian.PutUint16(tag[2:], aux.Vlan_tci)
		}
	}
	return tag, tagged, nil
}

// Wait waits for a packet, for at most d.
func (t *PacketTap) Wait(d time.Duration) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}, int(max(d, time.Millisecond).Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

// Dropped is how many packets the kernel has dropped since the start for lack of
// room.
func (t *PacketTap) Dropped() (uint64, error) {
	s, err := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return t.dropped, err
	}
	t.dropped += uint64(s.Drops) // the kernel restarts at 0
	return t.dropped, nil
}

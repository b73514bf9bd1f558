// SPDX-License-Identifier: Apache-2.0

package afpacket

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Lengths in bytes.
const (
	virtioHeader = 10        // struct virtio_net_hdr
	tagLength    = 4         // an 802.1Q tag
	addresses    = 12        // destination and source
	longestFrame = 128 << 10 // longer than any unsegmented frame
)

// Fields of struct virtio_net_hdr.
const (
	flagNeedsChecksum = 1 // in byte 0
	gsoType           = 1 // offset of a byte
	headerLength      = 2 // offset of 16 bits, native order
	checksumStart     = 6 // offset of 16 bits, native order
)

// Flags of struct tpacket_auxdata (linux/if_packet.h).
const (
	statusTagValid      = 1 << 4
	statusTagProtoValid = 1 << 6
)

// frame is a buffer for one frame and its virtio header, with room in front
// for a VLAN tag that the kernel removed.
type frame struct {
	buf     []byte // tagLength of room, the header, the frame
	start   int    // current offset of the header
	control [64]byte
	msg     unix.Msghdr
	iov     unix.Iovec
}

func newFrame() *frame {
	f := &frame{buf: make([]byte, tagLength+virtioHeader+longestFrame)}
	f.iov.Base = &f.buf[tagLength]
	f.iov.SetLen(f.capacity())
	f.msg.Iov = &f.iov
	f.msg.SetIovlen(1)
	f.msg.Control = &f.control[0]
	return f
}

// capacity is the maximum length of a frame with its header.
func (f *frame) capacity() int { return virtioHeader + longestFrame }

// bytes is the header and the frame, n bytes in total.
func (f *frame) bytes(n int) []byte { return f.buf[f.start : f.start+n] }

// restoreTag restores the VLAN tag, which the kernel delivers separately, and
// returns the new length. Without it, a port would accept frames of another
// network.
func (f *frame) restoreTag(n int) int {
	f.start = tagLength
	proto, tag, tagged := f.tag()
	if !tagged || n < virtioHeader+addresses {
		return n
	}
	f.start = 0
	copy(f.buf, f.buf[tagLength:tagLength+virtioHeader+addresses])
	at := f.buf[virtioHeader+addresses:]
	binary.BigEndian.PutUint16(at, proto)
	binary.BigEndian.PutUint16(at[2:], tag)
	if f.buf[0]&flagNeedsChecksum != 0 {
		addTo(f.buf[checksumStart:], tagLength)
	}
	if f.buf[gsoType] != 0 {
		addTo(f.buf[headerLength:], tagLength)
	}
	return n + tagLength
}

func addTo(field []byte, n uint16) {
	binary.NativeEndian.PutUint16(field, binary.NativeEndian.Uint16(field)+n)
}

// tag reads the auxiliary data of the frame last received.
func (f *frame) tag() (proto, tag uint16, ok bool) {
	messages, err := unix.ParseSocketControlMessage(f.control[:f.msg.Controllen])
	if err != nil {
		return 0, 0, false
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA ||
			len(m.Data) < int(unsafe.Sizeof(unix.TpacketAuxdata{})) {
			continue
		}
		aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0]))
		if aux.Status&statusTagValid == 0 {
			return 0, 0, false
		}
		proto = unix.ETH_P_8021Q
		if aux.Status&statusTagProtoValid != 0 {
			proto = aux.Vlan_tpid
		}
		return proto, aux.Vlan_tci, true
	}
	return 0, 0, false
}

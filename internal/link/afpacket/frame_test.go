// SPDX-License-Identifier: Apache-2.0

package afpacket

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// received fills a frame like the kernel: virtio header and untagged frame in
// the buffer, the tag in the auxiliary data.
func received(f *frame, header, data []byte, aux unix.TpacketAuxdata) int {
	copy(f.buf[tagLength:], header)
	copy(f.buf[tagLength+virtioHeader:], data)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&f.control[0]))
	h.Level, h.Type = unix.SOL_PACKET, unix.PACKET_AUXDATA
	size := int(unsafe.Sizeof(aux))
	h.SetLen(unix.CmsgLen(size))
	*(*unix.TpacketAuxdata)(unsafe.Pointer(&f.control[unix.CmsgLen(0)])) = aux
	f.msg.SetControllen(unix.CmsgSpace(size))
	return len(header) + len(data)
}

var (
	untagged = []byte("\x02\xda\x00\x00\x00\x01\x02\xda\x00\x00\x00\x66\x08\x00payload")
	tagged   = []byte("\x02\xda\x00\x00\x00\x01\x02\xda\x00\x00\x00\x66\x88\xa8\x60\x07\x08\x00payload")
)

func virtio(flags, gso byte, hdrLen, csumStart uint16) []byte {
	h := make([]byte, virtioHeader)
	h[0], h[gsoType] = flags, gso
	binary.NativeEndian.PutUint16(h[headerLength:], hdrLen)
	binary.NativeEndian.PutUint16(h[checksumStart:], csumStart)
	return h
}

func TestRestoreTag(t *testing.T) {
	valid := uint32(statusTagValid | statusTagProtoValid)
	cases := []struct {
		name   string
		header []byte
		aux    unix.TpacketAuxdata
		want   []byte
	}{
		{"no tag", virtio(1, 1, 54, 34), unix.TpacketAuxdata{}, append(virtio(1, 1, 54, 34), untagged...)},
		{
			"tag, nothing left undone", virtio(0, 0, 0, 0),
			unix.TpacketAuxdata{Status: valid, Vlan_tci: 0x6007, Vlan_tpid: 0x88a8},
			append(virtio(0, 0, 0, 0), tagged...),
		},
		{
			"tag, checksum and segments to do", virtio(1, 1, 54, 34),
			unix.TpacketAuxdata{Status: valid, Vlan_tci: 0x6007, Vlan_tpid: 0x88a8},
			append(virtio(1, 1, 58, 38), tagged...),
		},
		{
			"tag without protocol is 802.1Q", virtio(0, 0, 0, 0),
			unix.TpacketAuxdata{Status: statusTagValid, Vlan_tci: 0x6007},
			append(virtio(0, 0, 0, 0), bytes.Replace(tagged, []byte("\x88\xa8"), []byte("\x81\x00"), 1)...),
		},
	}
	f := newFrame() // one for all cases: no state may remain
	for _, c := range cases {
		n := f.restoreTag(received(f, c.header, untagged, c.aux))
		if !bytes.Equal(f.bytes(n), c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, f.bytes(n), c.want)
		}
	}
}

// TestRestoreTagShort uses input that no Ethernet interface delivers.
func TestRestoreTagShort(t *testing.T) {
	f := newFrame()
	aux := unix.TpacketAuxdata{Status: statusTagValid, Vlan_tci: 7}
	for n := range virtioHeader + addresses {
		received(f, nil, nil, aux)
		if got := f.restoreTag(n); got != n {
			t.Errorf("a frame of %d bytes with its header became one of %d", n, got)
		}
	}
}

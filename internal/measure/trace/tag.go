// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"golang.org/x/sys/unix"
)

// Draygen's header (dataplane/gen/README.md, "Packet") is the tag of a packet. Functions pass
// it on, whatever headers they put before it or take off.
const (
	tagSize    = 56
	tagVersion = 4
	tagType    = 5
	tagFlags   = 6
	tagStream  = 8
	tagNumber  = 16
	tagSent    = 32
	tagSum     = 52

	versions   = 2 // 1 and 2, which differ in fields that are not read here
	typeData   = 1
	flagWarmup = 1

	// headersAtMost is how far into a frame the tag may begin: two VLAN tags, IPv6 and UDP
	// around GTP-U with extensions, around IPv6 and UDP.
	headersAtMost = 200
	snaplen       = headersAtMost + tagSize
)

var (
	tagMagic   = []byte("DGEN")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// tag is what a packet says of itself.
type tag struct {
	stream uint32
	number uint64
	sent   int64 // ns of CLOCK_MONOTONIC
}

// find returns the tag of a measured data packet; false if it has none. The packet is
// untrusted.
func find(packet []byte) (tag, bool) {
	for rest := packet; ; rest = rest[1:] {
		at := bytes.Index(rest, tagMagic)
		if at < 0 || len(rest) < at+tagSize {
			return tag{}, false
		}
		rest = rest[at:]
		if t, ok := read(rest[:tagSize]); ok {
			return t, true
		}
	}
}

func read(header []byte) (tag, bool) {
	le := binary.LittleEndian
	if v := header[tagVersion]; v < 1 || v > versions || header[tagType] != typeData || le.Uint16(header[tagFlags:])&flagWarmup != 0 ||
		crc32.Checksum(header[:tagSum], castagnoli) != le.Uint32(header[tagSum:]) {
		return tag{}, false
	}
	return tag{le.Uint32(header[tagStream:]), le.Uint64(header[tagNumber:]), int64(le.Uint64(header[tagSent:]))}, true
}

// sampling lets every so many packets of a stream pass, by their numbers: a power of two, at
// most 128.
type sampling uint8

// of is the sampling of a stream that leaves no more than perSecond packets each second, if it
// can.
func samplingOf(rate, perSecond float64) sampling {
	n := sampling(1)
	for n < 128 && rate/float64(n) > perSecond {
		n *= 2
	}
	return n
}

func (s sampling) takes(number uint64) bool { return number%uint64(s) == 0 }

// filter is takes as a classic BPF program of a packet socket, for packets with tags at the
// beginning of so many last bytes: only these cost a copy. Headers are before those bytes,
// however long they are.
func (s sampling) filter(payload int) []unix.SockFilter {
	magic := binary.BigEndian.Uint32(tagMagic)
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
		{Code: unix.BPF_ALU | unix.BPF_SUB | unix.BPF_K, K: uint32(payload)},
		{Code: unix.BPF_MISC | unix.BPF_TAX},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: magic, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: tagNumber},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: uint32(s) - 1, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: snaplen},
		{Code: unix.BPF_RET | unix.BPF_K},
	}
}

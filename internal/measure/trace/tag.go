// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"slices"

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

// sampling lets one of so many packets of a stream pass: a power of two, at most 128. A hash of
// the stream and of the packet's number chooses them. Every so many packets would not do: senders,
// shapers and queues have rhythms too, so that a loss in step with them would count for all
// packets or for none.
type sampling uint8

// samplingOf is the sampling of a stream that leaves no more than perSecond packets each second,
// if it can.
func samplingOf(rate, perSecond float64) sampling {
	n := sampling(1)
	for n < 128 && rate/float64(n) > perSecond {
		n *= 2
	}
	return n
}

// The hash is the finalizer of MurmurHash3 (Appleby, 2011): every bit of the key changes each bit
// of the hash with a probability near a half. A step is x ^= x >> shift, x *= factor; a factor of 0 ends it.
var hashSteps = []struct{ shift, factor uint32 }{{16, 0x85ebca6b}, {13, 0xc2b2ae35}, {16, 0}}

// takes reports whether the packet with this number of the stream is followed.
func (s sampling) takes(stream uint32, number uint64) bool {
	// As a classic BPF program reads them, most significant byte first.
	hash := bits.ReverseBytes32(stream) ^ bits.ReverseBytes32(uint32(number))
	for _, step := range hashSteps {
		hash ^= hash >> step.shift
		if step.factor != 0 {
			hash *= step.factor
		}
	}
	return hash&(uint32(s)-1) == 0
}

// count is how many of the stream's packets from one number up to another, excluded, are followed.
func (s sampling) count(stream uint32, from, to uint64) (n uint64) {
	for number := from; number < to; number++ {
		if s.takes(stream, number) {
			n++
		}
	}
	return n
}

// filter is takes as a classic BPF program of a packet socket, for packets with tags at the
// beginning of so many last bytes: only these cost a copy. Headers are before those bytes,
// however long they are.
func (s sampling) filter(payload int) []unix.SockFilter {
	magic := binary.BigEndian.Uint32(tagMagic)
	hash := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND, K: tagStream},
		{Code: unix.BPF_ST},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND, K: tagNumber},
		{Code: unix.BPF_LDX | unix.BPF_MEM},
		{Code: unix.BPF_ALU | unix.BPF_XOR | unix.BPF_X},
	}
	for _, step := range hashSteps {
		hash = append(hash,
			unix.SockFilter{Code: unix.BPF_ST},
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: step.shift},
			unix.SockFilter{Code: unix.BPF_LDX | unix.BPF_MEM},
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_XOR | unix.BPF_X})
		if step.factor != 0 {
			hash = append(hash, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_MUL | unix.BPF_K, K: step.factor})
		}
	}
	return slices.Concat([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
		{Code: unix.BPF_ALU | unix.BPF_SUB | unix.BPF_K, K: uint32(payload)},
		{Code: unix.BPF_MISC | unix.BPF_TAX},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: magic, Jf: uint8(len(hash) + 2)},
	}, hash, []unix.SockFilter{
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: uint32(s) - 1, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: snaplen},
		{Code: unix.BPF_RET | unix.BPF_K},
	})
}

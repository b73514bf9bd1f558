// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"syscall"
)

// Page is the alignment of parts of the shared memory, in bytes.
const Page = 4096

// sizeMax is the largest data memfd, captureSizeMax the largest capture memfd, in bytes.
const (
	sizeMax        = 64 << 30
	captureSizeMax = 1 << 30
)

// Geometry is the shape of a data memfd. Sizes are bytes.
type Geometry struct {
	Size        uint64 `wire:"size" json:"size"`
	PageSize    uint32 `wire:"page_size" json:"page_size"`
	Queues      uint32 `wire:"queues" json:"queues"`
	RingSize    uint32 `wire:"ring_size" json:"ring_size"`
	PktSlots    uint32 `wire:"pkt_slots" json:"pkt_slots"`
	PktStride   uint32 `wire:"pkt_stride" json:"pkt_stride"`
	PktHeadroom uint32 `wire:"pkt_headroom" json:"pkt_headroom"`
	MsgSlots    uint32 `wire:"msg_slots" json:"msg_slots"`
	MsgStride   uint32 `wire:"msg_stride" json:"msg_stride"`
	MsgHeadroom uint32 `wire:"msg_headroom" json:"msg_headroom"`
	Reserved    uint32 `wire:"reserved" json:"reserved"`
}

// Offsets follow from a geometry; all but Size are within a lane.
type Offsets struct {
	Extensions, Completions, Packets, Messages, LaneSize, Size uint64
}

// Bounds of a geometry.
const (
	RingMin      = 64
	RingMax      = 65536
	PktSlotsMin  = 32
	MsgSlotsMax  = 4096
	HeadroomMin  = 128
	headroomMax  = 32768
	PktStrideMax = 131072
	MsgStrideMax = 4<<20 + headroomMax
)

func between[T uint32 | uint64](x, low, high T) bool { return x >= low && x <= high }

func powerOfTwo(x uint32) bool { return x != 0 && x&(x-1) == 0 }

func up(x, a uint64) uint64 { return (x + a - 1) / a * a }

func slotsFit(stride, headroom, strideMax uint32) bool {
	return headroom%64 == 0 && between(headroom, HeadroomMin, headroomMax) && stride%64 == 0 &&
		between(stride, headroom+64, strideMax)
}

func (g *Geometry) messagesFit() bool {
	if g.MsgSlots == 0 {
		return g.MsgStride == 0 && g.MsgHeadroom == 0
	}
	return g.MsgSlots <= MsgSlotsMax && slotsFit(g.MsgStride, g.MsgHeadroom, MsgStrideMax)
}

// Derive checks a geometry, except its Size, and computes the offsets in 64
// bits. The error is EINVAL.
func (g *Geometry) Derive() (Offsets, error) {
	if !powerOfTwo(g.PageSize) || !between(g.PageSize, Page, 1<<30) || !between(g.Queues, 1, MaxQueues) ||
		!powerOfTwo(g.RingSize) || !between(g.RingSize, RingMin, RingMax) ||
		!between(g.PktSlots, PktSlotsMin, g.RingSize) || !slotsFit(g.PktStride, g.PktHeadroom, PktStrideMax) ||
		!g.messagesFit() || uint64(g.PktSlots)+uint64(g.MsgSlots) > uint64(g.RingSize) || g.Reserved != 0 {
		return Offsets{}, syscall.EINVAL
	}
	var o Offsets
	ring := uint64(g.RingSize)
	o.Extensions = 512 + 16*ring
	o.Completions = o.Extensions + 16*ring
	o.Packets = up(o.Completions+4*ring, Page)
	o.Messages = up(o.Packets+uint64(g.PktSlots)*uint64(g.PktStride), Page)
	o.LaneSize = up(o.Messages+uint64(g.MsgSlots)*uint64(g.MsgStride), Page)
	o.Size = up(Page+2*uint64(g.Queues)*o.LaneSize, uint64(g.PageSize))
	if o.Size > sizeMax {
		return Offsets{}, syscall.EINVAL
	}
	return o, nil
}

// Check is Derive, and also checks Size.
func (g *Geometry) Check() (Offsets, error) {
	o, err := g.Derive()
	if err == nil && g.Size != o.Size {
		err = syscall.EINVAL
	}
	return o, err
}

// LaneWords are the shared words at the beginning of a lane.
type LaneWords struct {
	Tail         uint32 `wire:"tail"`
	NewestTail   uint32 `wire:"newest_tail"`
	_            [8]byte
	Newest       Descriptor `wire:"newest"`
	_            [96]byte
	Returned     uint32 `wire:"returned"`
	_            [124]byte
	ReceiverBell uint32 `wire:"receiver_bell"`
	_            [124]byte
	SenderBell   uint32 `wire:"sender_bell"`
	_            [124]byte
}

// Descriptor is descriptor v1, as the two words that are stored and loaded.
type Descriptor struct {
	PlaceLength     uint64 `wire:"place_length"`
	OffsetFlagsMeta uint64 `wire:"offset_flags_meta"`
}

// Extension accompanies a descriptor.
type Extension struct {
	Stamp    uint64 `wire:"stamp"`
	HashVLAN uint64 `wire:"hash_vlan"`
}

// CaptureWords are the shared words at the beginning of a capture ring.
type CaptureWords struct {
	Tail     uint32 `wire:"tail"`
	Reserved uint32 `wire:"reserved"`
	Lost     uint64 `wire:"lost"`
	_        [112]byte
	Head     uint32 `wire:"head"`
	_        [124]byte
}

// CaptureRecord precedes the bytes of a captured packet.
type CaptureRecord struct {
	Time     uint64 `wire:"time"`
	Length   uint32 `wire:"length"`
	Captured uint32 `wire:"captured"`
	Flags    uint32 `wire:"flags"`
	Meta     uint32 `wire:"meta"`
	Reserved uint64 `wire:"reserved"`
}

// Bounds of a capture.
const (
	captureWords      = 256
	captureRecord     = 32
	CaptureSlotsMin   = 64
	CaptureSlotsMax   = 65536
	CaptureSnaplenMax = 262144
)

// Derive checks the start of a capture, except its Size. It computes the size
// of one ring and of the memfd in bytes. The error is EINVAL.
func (c *Capture) Derive() (ring, size uint64, err error) {
	if !powerOfTwo(c.Slots) || !between(c.Slots, CaptureSlotsMin, CaptureSlotsMax) || c.SlotSize%64 != 0 ||
		!between(c.Snaplen, 1, CaptureSnaplenMax) ||
		!between(uint64(c.SlotSize), captureRecord+uint64(c.Snaplen), captureRecord+CaptureSnaplenMax+64) ||
		!between(c.Queues, 1, MaxQueues) || c.Reserved != 0 {
		return 0, 0, syscall.EINVAL
	}
	ring = up(captureWords+uint64(c.Slots)*uint64(c.SlotSize), Page)
	size = 2 * uint64(c.Queues) * ring
	if size > captureSizeMax {
		return 0, 0, syscall.EINVAL
	}
	return ring, size, nil
}

// HistogramSize is the number of buckets: 32 per power of two, up to 2^41.
const HistogramSize = 1184

// HistogramLow is the lowest value of a bucket; the bucket ends at the next
// bucket's lowest value.
func HistogramLow(index int) uint64 {
	if index < 32 {
		return uint64(index)
	}
	shift := index/32 - 1
	return uint64(index-32*shift) << shift
}

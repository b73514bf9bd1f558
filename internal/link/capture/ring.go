// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// Offsets in a capture ring and its records (PROTOCOL.md, section 11).
const (
	ringTail  = 0
	ringLost  = 8
	ringHead  = 128
	ringSlots = 256

	recordSize     = 32
	recordTime     = 0
	recordLength   = 8
	recordCaptured = 12

	lengthMax = 4<<20 + 64<<10 // bytes of a packet
)

// ring is the reader's end of one ring. The function may write anything to it
// at any time: each word is loaded once, and the copy is checked.
type ring struct {
	memory    []byte
	slots     uint32
	slotSize  uint32
	snaplen   uint32
	sent      bool
	queue     int
	malformed uint64

	head    uint32 // records read
	limit   uint32 // where this pass ends
	badTail uint32 // last one counted; 0: none, since an initial tail of 0 is always valid
	next    record // at head, if have is set
	have    bool
}

// record is the private copy of a record's fields.
type record struct {
	time             int64
	length, captured uint32
}

func newRing(memory []byte, c *wire.Capture, index int) *ring {
	return &ring{memory: memory, slots: c.Slots, slotSize: c.SlotSize, snaplen: c.Snaplen, sent: index%2 == 0, queue: index / 2}
}

func (r *ring) word(offset int) *uint32 { return (*uint32)(unsafe.Pointer(&r.memory[offset])) }

// begin sets the end of this pass: at most one ring ahead.
func (r *ring) begin() {
	tail := atomic.LoadUint32(r.word(ringTail)) // acquire: pairs with the release in capture_ring_publish
	if tail-r.head <= r.slots {
		r.limit = tail
		return
	}
	r.limit = r.head
	if tail != r.badTail {
		r.badTail = tail
		r.malformed++
	}
}

// peek sets next to the oldest valid record; false if there is none.
func (r *ring) peek() bool {
	for !r.have && r.head != r.limit {
		slot := r.slot()
		header := [recordSize]byte(slot[:recordSize])
		le := binary.LittleEndian
		r.next = record{
			time:     int64(le.Uint64(header[recordTime:])),
			length:   le.Uint32(header[recordLength:]),
			captured: le.Uint32(header[recordCaptured:]),
		}
		if r.next.captured <= r.snaplen && r.next.captured <= r.next.length && r.next.length <= lengthMax {
			r.have = true
			return true
		}
		r.malformed++
		r.advance()
	}
	return r.have
}

func (r *ring) slot() []byte {
	at := ringSlots + int(r.head&(r.slots-1))*int(r.slotSize)
	return r.memory[at : at+int(r.slotSize)]
}

// take copies the bytes of next to buf, which holds snaplen bytes, and releases the slot.
func (r *ring) take(buf []byte) Packet {
	n := copy(buf, r.slot()[recordSize:recordSize+r.next.captured])
	p := Packet{Time: r.next.time, Length: int(r.next.length), Data: buf[:n], Sent: r.sent, Queue: r.queue}
	r.have = false
	r.advance()
	return p
}

func (r *ring) advance() {
	r.head++
	atomic.StoreUint32(r.word(ringHead), r.head) // release: pairs with the acquire in room
}

func (r *ring) lost() uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.memory[ringLost])))
}

// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/test/testenv"
)

// TestLayout checks the offsets against the protocol's, which the vectors test
// of internal/link/broker/wire checks.
func TestLayout(t *testing.T) {
	var w wire.CaptureWords
	var r wire.CaptureRecord
	for name, c := range map[string][2]uintptr{
		"tail": {unsafe.Offsetof(w.Tail), ringTail}, "lost": {unsafe.Offsetof(w.Lost), ringLost},
		"head": {unsafe.Offsetof(w.Head), ringHead}, "slots": {unsafe.Sizeof(w), ringSlots},
		"time": {unsafe.Offsetof(r.Time), recordTime}, "length": {unsafe.Offsetof(r.Length), recordLength},
		"captured": {unsafe.Offsetof(r.Captured), recordCaptured}, "record": {unsafe.Sizeof(r), recordSize},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is at %d, not %d", name, c[1], c[0])
		}
	}
}

// start is the layout in these tests.
func start(queues uint32) wire.Capture {
	c := wire.Capture{Slots: 64, SlotSize: 192, Snaplen: 100, Queues: queues}
	_, c.Size, _ = c.Derive()
	return c
}

// newMemory is a reader of anonymous memory whose indices start at head.
func newMemory(t testing.TB, c wire.Capture, head uint32) *Memory {
	t.Helper()
	size, _, err := c.Derive()
	testenv.Must(t, err)
	words := make([]uint64, c.Size/8) // aligned, as a mapping is
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), c.Size)
	m := &Memory{memory: memory, buf: make([]byte, c.Snaplen)}
	for i := range 2 * int(c.Queues) {
		r := newRing(memory[uint64(i)*size:uint64(i+1)*size], &c, i)
		r.head, r.limit = head, head
		*r.word(ringTail), *r.word(ringHead) = head, head
		m.rings = append(m.rings, r)
	}
	return m
}

// put is the function's end: it writes a record without reading the head.
func put(r *ring, time uint64, length uint32, data []byte) {
	tail := atomic.LoadUint32(r.word(ringTail))
	slot := r.memory[ringSlots+int(tail%r.slots)*int(r.slotSize):]
	binary.LittleEndian.PutUint64(slot[recordTime:], time)
	binary.LittleEndian.PutUint32(slot[recordLength:], length)
	binary.LittleEndian.PutUint32(slot[recordCaptured:], uint32(len(data)))
	copy(slot[recordSize:], data)
	atomic.StoreUint32(r.word(ringTail), tail+1)
}

// drain reads once, and describes the packets.
func drain(t testing.TB, m *Memory) []string {
	t.Helper()
	var all []string
	err := m.Read(func(p Packet) error {
		all = append(all, fmt.Sprintf("%d %d/%d %q %v %d", p.Time, len(p.Data), p.Length, p.Data, p.Sent, p.Queue))
		return nil
	})
	testenv.Must(t, err)
	return all
}

func TestReadMergesRings(t *testing.T) {
	for _, head := range []uint32{0, 1<<32 - 2} {
		m := newMemory(t, start(2), head)
		put(m.rings[0], 10, 3, []byte("abc"))
		put(m.rings[3], 5, 400, []byte("xy"))
		put(m.rings[0], 30, 1, []byte("d"))
		put(m.rings[1], 20, 2, []byte("ef"))
		put(m.rings[0], 40, 0, nil)
		want := []string{`5 2/400 "xy" false 1`, `10 3/3 "abc" true 0`, `20 2/2 "ef" false 0`, `30 1/1 "d" true 0`, `40 0/0 "" true 0`}
		if got := drain(t, m); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("from %d: got %q", head, got)
		}
		if got := atomic.LoadUint32(m.rings[0].word(ringHead)); got != head+3 {
			t.Errorf("head %d after three records from %d", got, head)
		}
		if got := drain(t, m); len(got) != 0 {
			t.Errorf("again: %q", got)
		}
		if c := m.Counts(); c != (Counts{}) {
			t.Errorf("counts %+v", c)
		}
	}
}

func TestReadStopsAtAnError(t *testing.T) {
	m := newMemory(t, start(1), 0)
	put(m.rings[0], 1, 1, []byte("a"))
	put(m.rings[0], 2, 1, []byte("b"))
	stop := errors.New("stop")
	if err := m.Read(func(Packet) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if got := drain(t, m); len(got) != 1 {
		t.Errorf("left: %q", got)
	}
}

func TestReadEnds(t *testing.T) {
	m := newMemory(t, start(1), 0)
	ended := make(chan struct{})
	m.ended = ended
	put(m.rings[0], 1, 1, []byte("a"))
	if n := len(drain(t, m)); n != 1 {
		t.Fatalf("%d packets", n)
	}
	put(m.rings[0], 2, 1, []byte("b"))
	close(ended)
	n := 0
	if err := m.Read(func(Packet) error { n++; return nil }); !errors.Is(err, ErrEnded) || n != 1 {
		t.Errorf("%d packets, %v; want the one that came before the end", n, err)
	}
}

// TestHostileRecords: impossible records are dropped and counted, and the next
// ones are read.
func TestHostileRecords(t *testing.T) {
	m := newMemory(t, start(1), 0)
	r := m.rings[0]
	spoil := func(offset int, v uint32) {
		tail := *r.word(ringTail)
		put(r, 1, 50, []byte("spoiled"))
		binary.LittleEndian.PutUint32(r.memory[ringSlots+int(tail%r.slots)*int(r.slotSize)+offset:], v)
	}
	spoil(recordCaptured, 101)     // over snaplen
	spoil(recordCaptured, 51)      // over its own length
	spoil(recordCaptured, 1<<32-1) // wraps
	spoil(recordLength, lengthMax+1)
	spoil(recordLength, 1<<32-1)
	put(r, 2, 4, []byte("good"))
	if got := drain(t, m); len(got) != 1 || got[0] != `2 4/4 "good" true 0` {
		t.Errorf("got %q", got)
	}
	if c := m.Counts(); c.Malformed != 5 {
		t.Errorf("%d malformed, want 5", c.Malformed)
	}
}

// TestHostileTail: a tail out of range gives no records until it is in range,
// and counts once per value.
func TestHostileTail(t *testing.T) {
	m := newMemory(t, start(1), 0)
	r := m.rings[0]
	for i, bad := range []uint32{65, 1 << 31, 1<<32 - 1} {
		*r.word(ringTail) = bad
		for range 3 {
			if got := drain(t, m); len(got) != 0 {
				t.Fatalf("tail %d gave %q", bad, got)
			}
		}
		if c := m.Counts(); c.Malformed != uint64(i+1) {
			t.Errorf("%d malformed, want %d", c.Malformed, i+1)
		}
	}
	*r.word(ringTail) = 0
	put(r, 2, 4, []byte("good"))
	if got := drain(t, m); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestLostIsReported(t *testing.T) {
	m := newMemory(t, start(2), 0)
	for i, r := range m.rings {
		binary.LittleEndian.PutUint64(r.memory[ringLost:], uint64(1+i))
	}
	if c := m.Counts(); c.Dropped != 10 {
		t.Errorf("dropped %d, want 10", c.Dropped)
	}
}

// FuzzMemory fills the memory with arbitrary bytes, also between passes. Each
// pass must end, and return no impossible packet.
func FuzzMemory(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 0, 0, 0, 0}, uint32(3), uint32(70))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 16}, 40), uint32(64), uint32(1<<31))
	f.Add([]byte{}, uint32(1<<32-1), uint32(5))
	f.Fuzz(func(t *testing.T, b []byte, tail, next uint32) {
		c := start(2)
		m := newMemory(t, c, tail-17)
		for i := 0; len(b) > 0 && i < len(m.memory); i += 7 {
			m.memory[i] = b[i%len(b)]
		}
		for pass := range 4 {
			seen := 0
			err := m.Read(func(p Packet) error {
				seen++
				if len(p.Data) > int(c.Snaplen) || len(p.Data) > p.Length || p.Length > lengthMax {
					t.Fatalf("%d bytes of %d", len(p.Data), p.Length)
				}
				*m.rings[seen%4].word(ringTail) += next // changes during the read
				return nil
			})
			if err != nil || seen > 4*int(c.Slots) {
				t.Fatalf("pass %d: %d packets, %v", pass, seen, err)
			}
			for _, r := range m.rings {
				*r.word(ringTail) = r.head + tail>>pass
				tail = tail*2654435761 + next
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// poll is the polling interval of an empty ring: a wake-up would cost the
// function a system call.
const poll = time.Millisecond

// Memory is the reader's end of a capture memfd.
type Memory struct {
	memory []byte
	rings  []*ring
	buf    []byte
	ended  <-chan struct{}
}

// OpenMemory maps a capture memfd with the layout start; f may then be closed.
// The source ends when ended is closed; nil: never.
func OpenMemory(f *os.File, start wire.Capture, ended <-chan struct{}) (*Memory, error) {
	ring, size, err := start.Derive()
	if err != nil || size != start.Size {
		return nil, errors.New("the broker describes an impossible capture memory")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != int64(size) {
		return nil, fmt.Errorf("the capture memory has %d bytes, not %d", info.Size(), size)
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the capture memory: %w", err)
	}
	m := &Memory{memory: memory, buf: make([]byte, start.Snaplen), ended: ended}
	for i := range 2 * int(start.Queues) {
		m.rings = append(m.rings, newRing(memory[uint64(i)*ring:uint64(i+1)*ring], &start, i))
	}
	return m, nil
}

// Close unmaps the memory.
func (m *Memory) Close() error { return unix.Munmap(m.memory) }

// guard calls f, which accesses the memory. The function at the other end
// cannot shrink the file, but it can punch holes. If the kernel has no page
// for a hole, that is an error here, not a crash.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch v := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("the capture memory cannot be read: %v", v)
		default:
			panic(v)
		}
	}()
	return f()
}

// Read passes on all current records of all rings, oldest first.
func (m *Memory) Read(take func(Packet) error) error {
	return guard(func() error { return m.read(take) })
}

func (m *Memory) read(take func(Packet) error) error {
	ended := m.hasEnded() // checked first, so that no earlier record is missed
	for _, r := range m.rings {
		r.begin()
	}
	for {
		r := m.oldest()
		if r == nil {
			break
		}
		if err := take(r.take(m.buf)); err != nil {
			return err
		}
	}
	if ended {
		return ErrEnded
	}
	return nil
}

func (m *Memory) hasEnded() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

// oldest is the ring with the earliest next record; nil if all are empty.
func (m *Memory) oldest() *ring {
	var first *ring
	for _, r := range m.rings {
		if r.peek() && (first == nil || r.next.time < first.next.time) {
			first = r
		}
	}
	return first
}

// Wait sleeps for at most one polling interval.
func (m *Memory) Wait(d time.Duration) error {
	time.Sleep(min(d, poll))
	return nil
}

// Counts are reported by the function, except Malformed.
func (m *Memory) Counts() Counts {
	var c Counts
	for _, r := range m.rings {
		_ = guard(func() error { c.Dropped += r.lost(); return nil }) // Read has reported this error
		c.Malformed += r.malformed
	}
	return c
}

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

// poll is how often an empty ring is looked at: nothing rings, since that would
// cost the function a system call.
const poll = time.Millisecond

// Memory is the reader's end of a capture memfd.
type Memory struct {
	memory []byte
	rings  []*ring
	buf    []byte
	ended  <-chan struct{}
}

// OpenMemory maps a capture memfd, whose shape start is; f may be closed
// afterwards. The source ends when ended is closed; nil: never.
func OpenMemory(f *os.File, start wire.Capture, ended <-chan struct{}) (*Memory, error) {
	ring, size, err := start.Derive()
	if err != nil || size != start.Size {
		return nil, errors.New("the broker describes a capture memory that cannot be")
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

// guard calls f, which looks at the memory. The function at the other end cannot
// shrink it; but if the kernel finds no page for a hole that it has punched, that
// is an error here, not a crash.
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

// Read hands over what all rings hold now, oldest first.
func (m *Memory) Read(take func(Packet) error) error {
	return guard(func() error { return m.read(take) })
}

func (m *Memory) read(take func(Packet) error) error {
	ended := m.hasEnded() // before looking: so nothing that came earlier is missed
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

// oldest is the ring whose next record is the earliest; nil if all are empty.
func (m *Memory) oldest() *ring {
	var first *ring
	for _, r := range m.rings {
		if r.peek() && (first == nil || r.next.time < first.next.time) {
			first = r
		}
	}
	return first
}

// Wait waits a moment.
func (m *Memory) Wait(d time.Duration) error {
	time.Sleep(min(d, poll))
	return nil
}

// Counts are reported by the function, but for Malformed.
func (m *Memory) Counts() Counts {
	var c Counts
	for _, r := range m.rings {
		_ = guard(func() error { c.Dropped += r.lost(); return nil }) // Read has said so
		c.Malformed += r.malformed
	}
	return c
}

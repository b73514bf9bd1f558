// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
)

// TelemetryHeader is at the start of a telemetry memfd.
type TelemetryHeader struct {
	Magic       uint32 `wire:"magic"`
	Version     uint32 `wire:"version"`
	Queues      uint32 `wire:"queues"`
	State       uint32 `wire:"state"`
	Generation  uint32 `wire:"generation"`
	Clock       uint32 `wire:"clock"`
	TickHz      uint64 `wire:"tick_hz"`
	_           [96]byte
	SampleShift uint32 `wire:"sample_shift"`
	_           [380]byte
	Classes     Classes `wire:"classes"`
	_           [32]byte
	Class       [ClassesMax]TelemetryClass `wire:"class"`
	_           [512]byte
}

// TelemetryClass is the report of one traffic class, since the port was opened or last got other classes.
type TelemetryClass struct {
	Packets     uint64 `wire:"packets"`
	Bytes       uint64 `wire:"bytes"`
	Dropped     uint64 `wire:"dropped"`
	Late        uint64 `wire:"late"` // dropped for their slot, not in Dropped
	Marked      uint64 `wire:"marked"`
	Queued      uint32 `wire:"queued"`
	QueuedMost  uint32 `wire:"queued_most"`
	QueuedBytes uint64 `wire:"queued_bytes"`
	LongestNS   uint64 `wire:"longest_ns"`
}

// TelemetryBlock is the report of one queue.
type TelemetryBlock struct {
	Counters  [CounterCount]uint64  `wire:"counters"`
	Depth     uint64                `wire:"depth"`
	Reserved  uint64                `wire:"reserved"`
	Histogram [HistogramSize]uint64 `wire:"histogram"`
}

const (
	telemetryMagic = 0x54415244
	telemetryBlock = 16384

	// SampleShiftOffset is where the broker writes, in bytes from the start of
	// the telemetry memfd.
	SampleShiftOffset = 128

	classesOffset        = 512
	classTelemetryOffset = 1024
)

// TelemetrySize is the size of the telemetry memfd of a port, in bytes.
func TelemetrySize(queues int) uint64 { return Page + telemetryBlock*uint64(queues) }

// Telemetry is an end's report, summed over its queues.
type Telemetry struct {
	State      uint32 // 0 down, 1 live, 2 lost the broker
	Generation uint32
	Clock      uint32
	TickHz     uint64
	Counters   [CounterCount]uint64
	Depth      uint64
	Histogram  [HistogramSize]uint64 // in ticks
	// Classes are the traffic classes in use; nil: none, or out of bounds. Class is
	// the report of each.
	Classes *Classes
	Class   [ClassesMax]TelemetryClass
}

// ParseTelemetry reads a private copy of the telemetry memfd of a port with
// that many queues. The function may have written anything there; the result
// is then some figures, or an error.
func ParseTelemetry(b []byte, queues int) (*Telemetry, error) {
	if uint64(len(b)) != TelemetrySize(queues) {
		return nil, errors.New("telemetry of another size")
	}
	le := binary.LittleEndian
	if le.Uint32(b) != telemetryMagic || le.Uint32(b[4:]) != Version {
		return nil, errors.New("the function has not written telemetry yet")
	}
	t := &Telemetry{State: le.Uint32(b[12:]), Generation: le.Uint32(b[16:]), Clock: le.Uint32(b[20:]), TickHz: le.Uint64(b[24:])}
	for q := range queues {
		block := b[Page+q*telemetryBlock:]
		for i := range t.Counters {
			t.Counters[i] += le.Uint64(block[8*i:])
		}
		t.Depth += le.Uint64(block[176:])
		for i := range t.Histogram {
			t.Histogram[i] += le.Uint64(block[192+8*i:])
		}
	}
	t.Classes = parseClasses(b[classesOffset:])
	if _, err := binary.Decode(b[classTelemetryOffset:], le, &t.Class); err != nil {
		return nil, err
	}
	return t, nil
}

// parseClasses is what a function says of its classes; nil if they are none, or not valid.
func parseClasses(b []byte) *Classes {
	c := new(Classes)
	if _, err := binary.Decode(b, binary.LittleEndian, c); err != nil || c.Check() != nil {
		return nil
	}
	return c
}

// ViolationNames are the kinds of violations, in the order of their counters.
var ViolationNames = [ViolationCount]string{
	"ring_index", "region", "slot", "double", "bounds", "flags", "stamp",
	"return_index", "return_slot", "return_forged", "hold", "bell",
}

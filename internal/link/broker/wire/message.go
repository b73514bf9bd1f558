// SPDX-License-Identifier: Apache-2.0

// Package wire implements the protocol between a broker and the two ends of a
// link (dataplane/port/PROTOCOL.md). It has the messages, geometry,
// shared-memory layout and histogram. It passes the protocol's test vectors.
package wire

import "errors"

// The protocol.
const (
	Magic      = 0x59415244 // the bytes "DRAY"
	Version    = 1
	MaxMessage = 512 // bytes, with the header
	MaxFDs     = 17  // descriptors that one message carries
	MaxQueues  = 16
	PortName   = 16 // bytes of the field; a name has one less
)

// Type is the type of a message.
type Type uint16

// Types of messages.
const (
	TypeHello Type = iota + 1
	TypeWelcome
	TypeOffer
	TypeMapped
	TypeSealed
	TypeActive
	TypeRebind
	TypeStats
	TypeBye
	TypeError
	TypeCapture
	TypeClasses

	typeHints Type = 0x8000 // unknown types from here on are ignored
)

// Sender is the side of a connection that sent a message.
type Sender int

const (
	FromEnd Sender = iota
	FromBroker
)

// ErrIgnored is returned for a message of a later version that may be ignored.
var ErrIgnored = errors.New("a hint from a later version")

// Feature bits.
const (
	FeatureMessages = 1 << iota
	FeatureStamps
	FeatureExtras
	FeatureNetdev
	FeatureReadopt
	FeatureCapture
	FeatureClasses

	FeaturesKnown = 1<<iota - 1
)

// Values of fields.
const (
	HelloReadopt     = 1 << 0
	WelcomeReadopted = 1 << 0
	WelcomeClasses   = 1 << 1 // a CLASSES message follows

	ModeBusy     = 0
	ModeAdaptive = 1
	ModeSleeping = 2

	ClockNS      = 0 // CLOCK_MONOTONIC
	ClockCounter = 1 // the CPU's constant counter

	HoldDrop = 0
	HoldCopy = 1

	KindNone   = 0
	KindShm    = 1
	KindNetdev = 2

	RebindDied   = 1
	RebindLeft   = 2
	RebindMoves  = 3
	RebindPolicy = 4

	ByeClosing = 0
	ByeRestart = 1

	SampleNone     = 0xffffffff
	SampleShiftMax = 20

	MTUMin = 68
	MTUMax = 65535
)

// Header is the start of each message.
type Header struct {
	Magic      uint32 `wire:"magic"`
	Version    uint16 `wire:"version"`
	Type       Type   `wire:"type"`
	Length     uint32 `wire:"length"`
	Generation uint32 `wire:"generation"`
}

// Hello is an end's first message.
type Hello struct {
	Features uint64         `wire:"features"`
	Port     [PortName]byte `wire:"port"`
	Queues   uint32         `wire:"queues"`
	Mode     uint32         `wire:"mode"`
	Clock    uint32         `wire:"clock"`
	Flags    uint32         `wire:"flags"`
	TickHz   uint64         `wire:"tick_hz"`
	Reserved uint64         `wire:"reserved"`
}

// Welcome is the broker's answer.
type Welcome struct {
	Features      uint64         `wire:"features"`
	Port          [PortName]byte `wire:"port"`
	MAC           [6]byte        `wire:"mac"`
	IP4Prefix     uint8          `wire:"ip4_prefix"`
	IP6Prefix     uint8          `wire:"ip6_prefix"`
	IP4           [4]byte        `wire:"ip4"`
	MTU           uint32         `wire:"mtu"`
	IP6           [16]byte       `wire:"ip6"`
	Queues        uint32         `wire:"queues"`
	SampleShift   uint32         `wire:"sample_shift"`
	HoldQuota     uint32         `wire:"hold_quota"`
	HoldPolicy    uint32         `wire:"hold_policy"`
	TelemetrySize uint64         `wire:"telemetry_size"`
	Flags         uint32         `wire:"flags"`
	Reserved      uint32         `wire:"reserved"`
}

// Offer brings a generation.
type Offer struct {
	Kind     uint32   `wire:"kind"`
	Side     uint32   `wire:"side"`
	PeerMode uint32   `wire:"peer_mode"`
	Queues   uint32   `wire:"queues"`
	Geometry Geometry `wire:"geometry"`
	Features uint64   `wire:"features"`
	Clock    uint32   `wire:"clock"`
	Reserved uint32   `wire:"reserved"`
}

// Mapped confirms the memory that an end has mapped.
type Mapped struct {
	Inode uint64 `wire:"inode"`
}

// Rebind ends a generation.
type Rebind struct {
	Reason uint32 `wire:"reason"`
	Next   uint32 `wire:"next"`
}

// CounterCount is the number of counters in STATS and in a telemetry block;
// the last ViolationCount of them count violations.
const (
	CounterCount   = 22
	ViolationCount = 12
)

// Stats is an end's answer to STATS.
type Stats struct {
	Queues   uint32               `wire:"queues"`
	Reserved uint32               `wire:"reserved"`
	Counters [CounterCount]uint64 `wire:"counters"`
}

// Bye ends a connection.
type Bye struct {
	Reason   uint32 `wire:"reason"`
	Reserved uint32 `wire:"reserved"`
}

// Error ends a connection, with the reason.
type Error struct {
	Code  uint32   `wire:"code"`
	About uint32   `wire:"about"`
	Text  [64]byte `wire:"text"`
}

// Capture starts a capture; with all fields 0, it stops it.
type Capture struct {
	Size     uint64 `wire:"size"`
	Slots    uint32 `wire:"slots"`
	SlotSize uint32 `wire:"slot_size"`
	Snaplen  uint32 `wire:"snaplen"`
	Queues   uint32 `wire:"queues"`
	Reserved uint64 `wire:"reserved"`
}

// Captured is the end's answer to the start of a capture.
type Captured struct {
	Error    uint32 `wire:"error"`
	Reserved uint32 `wire:"reserved"`
}

// Text is the text of a character field, up to its first NUL.
func Text(field []byte) string {
	for i, c := range field {
		if c == 0 {
			return string(field[:i])
		}
	}
	return string(field)
}

// NewError is the body of an ERROR; a text that is too long is cut.
func NewError(code, about uint32, text string) *Error {
	e := &Error{Code: code, About: about}
	copy(e.Text[:len(e.Text)-1], text)
	return e
}

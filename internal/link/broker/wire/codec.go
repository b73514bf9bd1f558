// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
)

// Message is one packet of the control socket. Body is a pointer to the type's
// struct, or nil if the type has no body.
type Message struct {
	Type       Type
	Generation uint32
	Body       any
}

// HeaderSize is the size of a header in bytes.
const HeaderSize = 16

// Marshal encodes a message. It panics if the body is not of this package.
func (m Message) Marshal() []byte {
	size := 0
	if m.Body != nil {
		size = binary.Size(m.Body)
	}
	h := Header{Magic: Magic, Version: Version, Type: m.Type, Length: uint32(size), Generation: m.Generation}
	b, err := binary.Append(make([]byte, 0, HeaderSize+size), binary.LittleEndian, h)
	if err == nil && m.Body != nil {
		b, err = binary.Append(b, binary.LittleEndian, m.Body)
	}
	if err != nil {
		panic(fmt.Sprintf("wire: message of type %d: %v", m.Type, err))
	}
	return b
}

// body is an empty body of the type; ok is false if that sender never sends it.
func body(t Type, from Sender) (v any, ok bool) {
	switch {
	case t == TypeBye:
		return new(Bye), true
	case t == TypeError:
		return new(Error), true
	case from == FromEnd:
		return endBody(t)
	}
	return brokerBody(t)
}

func endBody(t Type) (v any, ok bool) {
	switch t {
	case TypeHello:
		return new(Hello), true
	case TypeMapped:
		return new(Mapped), true
	case TypeActive:
		return nil, true
	case TypeStats:
		return new(Stats), true
	case TypeCapture:
		return new(Captured), true
	case TypeClasses:
		return new(Classed), true
	}
	return nil, false
}

func brokerBody(t Type) (v any, ok bool) {
	switch t {
	case TypeWelcome:
		return new(Welcome), true
	case TypeOffer:
		return new(Offer), true
	case TypeSealed, TypeStats:
		return nil, true
	case TypeRebind:
		return new(Rebind), true
	case TypeCapture:
		return new(Capture), true
	case TypeClasses:
		return new(Classes), true
	}
	return nil, false
}

// Parse checks and decodes one packet with its number of descriptors. The error is
// ErrIgnored, or the errno for the answer: EMSGSIZE, EPROTONOSUPPORT or EPROTO.
func Parse(b []byte, fds int, from Sender) (Message, error) {
	m, err := ParseAlone(b, from)
	if err == nil && fds != descriptors(m) {
		return Message{}, syscall.EPROTO
	}
	return m, err
}

// ParseAlone is Parse for a packet that has come without its descriptors.
func ParseAlone(b []byte, from Sender) (Message, error) {
	var h Header
	if len(b) > MaxMessage {
		return Message{}, syscall.EMSGSIZE
	}
	if n, err := binary.Decode(b, binary.LittleEndian, &h); err != nil || n != HeaderSize || h.Magic != Magic {
		return Message{}, syscall.EPROTO
	}
	if h.Version != Version {
		return Message{}, syscall.EPROTONOSUPPORT
	}
	if uint64(h.Length) != uint64(len(b)-HeaderSize) {
		return Message{}, syscall.EPROTO
	}
	if h.Type >= typeHints {
		return Message{}, ErrIgnored
	}
	m := Message{Type: h.Type, Generation: h.Generation}
	v, ok := body(h.Type, from)
	size := 0
	if v != nil {
		size = binary.Size(v)
	}
	if !ok || len(b)-HeaderSize != size {
		return Message{}, syscall.EPROTO
	}
	if v != nil {
		if _, err := binary.Decode(b[HeaderSize:], binary.LittleEndian, v); err != nil {
			return Message{}, syscall.EPROTO
		}
		m.Body = v
	}
	if !valid(m) {
		return Message{}, syscall.EPROTO
	}
	return m, nil
}

// descriptors is the number of descriptors that a message must carry.
func descriptors(m Message) int {
	switch b := m.Body.(type) {
	case *Hello:
		return int(b.Flags & HelloReadopt)
	case *Welcome:
		return 1
	case *Offer:
		if b.Kind == KindShm {
			return 1 + int(b.Queues)
		}
		return int(b.Queues)
	case *Capture:
		if *b != (Capture{}) {
			return 1
		}
	}
	return 0
}

func valid(m Message) bool {
	switch b := m.Body.(type) {
	case *Hello:
		return b.valid()
	case *Welcome:
		return b.valid()
	case *Offer:
		return m.Generation != 0 && b.valid()
	case *Rebind:
		return b.Reason >= RebindDied && b.Reason <= RebindPolicy && b.Next <= KindNetdev
	case *Stats:
		return b.Reserved == 0
	case *Bye:
		return b.Reason <= ByeRestart && b.Reserved == 0
	case *Error:
		return b.Code < 4096 && b.Text[len(b.Text)-1] == 0
	case *Capture:
		return m.Generation == 0 && b.valid()
	case *Captured:
		return m.Generation == 0 && b.Error < 4096 && b.Reserved == 0
	case *Classes:
		return m.Generation == 0 && b.Check() == nil
	case *Classed:
		return m.Generation == 0 && b.Error < 4096 && b.Reserved == 0
	}
	return true
}

func (h *Hello) valid() bool {
	return nameFieldValid(h.Port) && h.Queues <= MaxQueues && h.Mode <= ModeSleeping && h.Clock <= ClockCounter &&
		h.Flags&^HelloReadopt == 0 && h.Reserved == 0
}

func (w *Welcome) valid() bool {
	return w.Features&^FeaturesKnown == 0 && nameFieldValid(w.Port) && w.IP4Prefix <= 32 && w.IP6Prefix <= 128 &&
		w.MTU >= MTUMin && w.MTU <= MTUMax && w.Queues >= 1 && w.Queues <= MaxQueues &&
		(w.SampleShift <= SampleShiftMax || w.SampleShift == SampleNone) && w.HoldPolicy <= HoldCopy &&
		w.TelemetrySize == TelemetrySize(int(w.Queues)) && w.Flags&^(WelcomeReadopted|WelcomeClasses) == 0 && w.Reserved == 0
}

func (o *Offer) valid() bool {
	if o.Side > 1 || o.PeerMode > ModeSleeping || o.Queues < 1 || o.Queues > MaxQueues ||
		o.Features&^FeaturesKnown != 0 || o.Clock > ClockCounter || o.Reserved != 0 {
		return false
	}
	return o.Kind == KindShm || o.Kind == KindNetdev && o.Geometry == Geometry{}
}

func (c *Capture) valid() bool {
	if *c == (Capture{}) {
		return true
	}
	_, size, err := c.Derive()
	return err == nil && c.Size == size
}

const nameAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// NameValid reports whether a port may have that name.
func NameValid(name string) bool {
	return name != "" && len(name) < PortName && name[0] != '.' && strings.Trim(name, nameAlphabet) == ""
}

// nameFieldValid requires exactly one name, padded with NUL.
func nameFieldValid(field [PortName]byte) bool {
	name, rest, ended := bytes.Cut(field[:], []byte{0})
	return ended && NameValid(string(name)) && len(bytes.Trim(rest, "\x00")) == 0
}

// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

// SlotLoad is a load of messages that are due at fixed times within slots. They are
// judged by whether they arrive in their receive windows.
type SlotLoad interface {
	fmt.Stringer // what is sent, for the basis of a verdict
	// Field is the load's field of a link. draygen's option has the same name.
	Field() string
	// Option is the load in draygen's form.
	Option() string
	// PacketRate is how many messages there are a second.
	PacketRate() units.PacketRate
	// Frame is the mean length of the messages, and Headers the length of what is before
	// the generator's payload, in bytes without FCS.
	Frame() int
	Headers() int
	// Ethernet reports whether each message is an Ethernet frame.
	Ethernet() bool
	// Bitrate is the load's payload, as a generator counts it.
	Bitrate() units.Bitrate
	// Transit is the longest time that a message may take which was sent at the
	// beginning of its window.
	Transit() units.Duration
}

// Slotted is what a link carries in slots instead of a bitrate. At most one is set.
type Slotted struct {
	Fronthaul *Fronthaul `json:"fronthaul,omitempty"`
	FAPI      *FAPI      `json:"fapi,omitempty"`
}

// SlotLoad is the one that is set; nil: none.
func (s Slotted) SlotLoad() SlotLoad {
	switch {
	case s.Fronthaul != nil:
		return s.Fronthaul
	case s.FAPI != nil:
		return s.FAPI
	}
	return nil
}

// payload is the bitrate of a load in slots.
func payload(s SlotLoad) units.Bitrate {
	return units.Bitrate(s.PacketRate()) * units.Bitrate(8*(s.Frame()-s.Headers()))
}

// slotsPerSecond is the numerology of 3GPP TS 38.211: one slot per millisecond at 15 kHz.
func slotsPerSecond(scs int) int { return 1000 * scs / 15 }

// knownSpacing reports whether slots of this subcarrier spacing, in kHz, are supported.
func knownSpacing(scs int) bool {
	_, known := usualWindows[scs]
	return known
}

func microseconds(d units.Duration) int64 { return time.Duration(d).Microseconds() }

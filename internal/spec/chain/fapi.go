// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

// FAPI is what a MAC tells the PHY about the downlink of each slot, as a link's load:
// two messages of the 5G FAPI PHY API (Small Cell Forum 222), both due at the slot's
// beginning.
type FAPI struct {
	SCS    int         `json:"scs"`     // kHz
	DLTTI  units.Bytes `json:"dl_tti"`  // of DL_TTI.request, the whole message
	TXData units.Bytes `json:"tx_data"` // of TX_DATA.request
	// Within is how long after the slot's beginning a message may arrive.
	Within units.Duration `json:"within"`
}

const (
	// defaultTXData is the peak of a cell of 100 MHz with four layers, in slots of 0.5 ms.
	defaultDLTTI, defaultTXData units.Bytes = 2048, 115_000
	// fapiHeaders are the PHY API message header, the message header, SFN and slot.
	fapiHeaders = 12
	// perSlot is how many messages each slot has.
	perSlot = 2
)

// slot is the length of a slot.
func (f *FAPI) slot() units.Duration {
	return units.Duration(time.Second) / units.Duration(slotsPerSecond(f.SCS))
}

// Largest is the longer message.
func (f *FAPI) Largest() units.Bytes { return max(f.DLTTI, f.TXData) }

// The methods of SlotLoad.

func (f *FAPI) Field() string { return "fapi" }

func (f *FAPI) PacketRate() units.PacketRate {
	return units.PacketRate(perSlot * slotsPerSecond(f.SCS))
}

func (f *FAPI) Frame() int { return int(f.DLTTI+f.TXData) / perSlot }

func (f *FAPI) Headers() int { return fapiHeaders }

func (f *FAPI) Ethernet() bool { return false }

func (f *FAPI) Bitrate() units.Bitrate { return payload(f) }

func (f *FAPI) Transit() units.Duration { return f.Within }

func (f *FAPI) Option() string {
	return fmt.Sprintf("scs=%d,dl-tti=%d,tx-data=%d,within=%d", f.SCS, f.DLTTI, f.TXData, microseconds(f.Within))
}

func (f *FAPI) String() string {
	return fmt.Sprintf("FAPI, %d and %d bytes in each slot of %v", f.DLTTI, f.TXData, f.slot())
}

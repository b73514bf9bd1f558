// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// Rates are what a port carries in one direction: payload of datagrams in frames of
// 1,518 bytes, and small packets. 0: nothing is known, or required.
type Rates struct {
	Bitrate    units.Bitrate
	PacketRate units.PacketRate
}

// Calibrated are the rates that a calibration of this host proves for one link of a
// transport. Stated defaults are none.
func Calibrated(inv *inventory.Inventory, transport string) Rates {
	c := figuresOf(inv, transport).measured
	if c == nil {
		return Rates{}
	}
	return Rates{units.Bitrate(c.UDPBitrate), units.PacketRate(c.PacketRate)}
}

// Demand is what each port of the link must carry, so that it can be added up. Shorter
// datagrams cost as much as full ones, as in the evidence for min_bitrate: they count in
// proportion. A calibration that meets the link's requirements is at least as high. TCP
// is not comparable, and counts as nothing.
func (l Link) Demand() Rates {
	r := Rates{PacketRate: l.Requires.PacketRate}
	if l.Traffic != chain.TrafficTCP {
		full := udpPayload(statedFrame, ipv4Header)
		r.Bitrate = units.Bitrate(float64(l.Requires.MinBitrate) * max(1, full/float64(l.UDPPayload())))
	}
	return r
}

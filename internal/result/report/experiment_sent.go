// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/drayage/dray/internal/result/record"
)

// SentRate is the requested load and the senders' rate: means over trials that missed
// it.
type SentRate struct {
	Asked float64 `json:"asked"`
	Sent  float64 `json:"sent"`
	Unit  string  `json:"unit"` // "packets/s", "bit/s"
}

// sentRate is for trials that missed their load; nil: none did, or none says by how
// much.
func sentRate(trials []record.Trial) *SentRate {
	packets, bits := SentRate{Unit: "packets/s"}, SentRate{Unit: "bit/s"}
	n := 0.0
	stated := true // in packets, for frames
	for _, t := range trials {
		if t.Delivery == nil || t.Error != "" || !slices.Contains(t.Marks, record.MarkLoadMissed) {
			continue
		}
		n++
		packets.Asked, packets.Sent = packets.Asked+float64(t.Delivery.OfferedRate), packets.Sent+float64(t.Delivery.SentRate)
		bits.Asked, bits.Sent = bits.Asked+float64(t.Delivery.OfferedBits), bits.Sent+float64(t.Delivery.SentBits)
		stated = stated && t.Quantity != record.QDelivery
	}
	s := &packets
	if !stated {
		s = &bits
	}
	if n == 0 || s.Asked == 0 {
		return nil
	}
	s.Asked, s.Sent = s.Asked/n, s.Sent/n
	return s
}

// String states the sent rate; empty for nil.
func (s *SentRate) String() string {
	if s == nil {
		return ""
	}
	format := ppsText
	if s.Unit == "bit/s" {
		format = bpsText
	}
	return format(s.Sent) + " sent of " + format(s.Asked)
}

// rejected is why a trial's times do not count if it missed its load.
func rejected(t record.Trial) string {
	why := "rejected: the sent rate is over 5 % off the load"
	if s := sentRate([]record.Trial{t}); s != nil {
		why += ": " + s.String()
	}
	return why
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/drayage/dray/internal/result/record"
)

// SentRate is the load that was asked for and the load that senders reached: means
// over the trials that missed it.
type SentRate struct {
	Asked float64 `json:"asked"`
	Sent  float64 `json:"sent"`
	Unit  string  `json:"unit"` // "packets/s", "bit/s"
}

// sentRate is of the trials that missed their load; nil: none did, or none says by how much.
func sentRate(trials []record.Trial) *SentRate {
	packets, bits := SentRate{Unit: "packets/s"}, SentRate{Unit: "bit/s"}
	n := 0.0
	stated := true // in packets, as frames are
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

// String says what was sent; of nil it is empty.
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

// rejected is why a trial's times do not count whose load was not offered.
func rejected(t record.Trial) string {
	why := "rejected: the offered load missed by over 5 %"
	if s := sentRate([]record.Trial{t}); s != nil {
		why += ": " + s.String()
	}
	return why
}

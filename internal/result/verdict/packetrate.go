// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/units"
)

// packetRate judges received packets. A sender that never offered the rate bounds
// itself, not the link: see sender.
func packetRate(floor units.PacketRate, all []record.Trial) func(float64, []record.Trial) Finding {
	return func(level float64, trials []record.Trial) Finding {
		r := &rate{unit: UnitPacketRate, format: FormatPacketRate, limit: floor.String()}
		bits := 0.0
		for _, t := range trials {
			if t.Delivery == nil {
				r.reject(t, noResult(t))
				continue
			}
			r.add(t, carried(t))
			bits = float64(floor) * frameBits(t.Delivery)
		}
		f, e, ok := r.estimate(level)
		if !ok {
			return f
		}
		if f = r.atLeast(f, e, float64(floor)); f.Verdict != Missed {
			return f
		}
		s := sender{
			limit: floor.String(), wanted: float64(floor), bits: bits, all: all, unit: UnitPacketRate, format: FormatPacketRate,
			offered: func(t record.Trial) float64 {
				if t.Delivery == nil {
					return 0
				}
				return float64(t.Delivery.SentRate)
			},
			held: func(t record.Trial) (uint64, time.Duration) {
				if t.OneWay == nil {
					return 0, 0
				}
				return t.OneWay.Held, t.OneWay.HeldFor
			},
		}
		return s.excuse(level, f, r.trials, carried)
	}
}

// carried is the link's delivered rate in packets per second: packets the receiver
// took, and packets it was too slow to take.
func carried(t record.Trial) float64 {
	v := float64(t.Delivery.PacketRate)
	if s := t.Duration.Seconds(); s > 0 {
		v += float64(t.Delivery.ReceiverDrops) / s
	}
	return v
}

// frameBits is a datagram's size as qdiscs count it: its frame without FCS.
func frameBits(d *record.Delivery) float64 {
	return 8 * math.Max(60, float64(d.FrameBytes-4))
}

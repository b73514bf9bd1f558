// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// bitrate judges received payload. Trials of other traffic than the link's are no
// evidence.
//
// With datagrams, "met" counts what the receiving program took. "missed" also counts
// delivered packets that it was too slow to take. It uses only trials whose sender did
// its part: see sender.
type bitrate struct {
	traffic chain.Traffic
	all     []record.Trial // of the run
}

func (b bitrate) atLeast(floor units.Bitrate) func(float64, []record.Trial) Finding {
	return func(level float64, trials []record.Trial) Finding {
		r := b.received(trials, nil)
		r.limit = floor.String()
		f, e, ok := r.estimate(level)
		if !ok {
			return f
		}
		f = r.atLeast(f, e, float64(floor))
		if f.Verdict != Missed || b.traffic == chain.TrafficTCP {
			return f
		}
		return b.sender(float64(floor), floor.String()).excuse(level, f, r.trials, delivered)
	}
}

func (b bitrate) atMost(ceiling units.Bitrate) func(float64, []record.Trial) Finding {
	return func(level float64, trials []record.Trial) Finding {
		r := b.received(trials, func(t record.Trial) string {
			if t.Throughput.BitsPerSecond == 0 {
				return "no packets passed, so the ceiling was not tested"
			}
			if s := b.sender(float64(ceiling), ""); delivered(t) < float64(ceiling) && !s.didItsPart(t) && !shapedBelow(t, 2*float64(ceiling)) {
				return "the sender offered " + FormatBitrate(float64(t.Delivery.SentBits)) + ", so the ceiling was not tested"
			}
			return ""
		})
		r.limit = ceiling.String()
		f, e, ok := r.estimate(level)
		if !ok {
			return f
		}
		if f = r.atMost(f, e, float64(ceiling)); f.Verdict != Met {
			return f
		}
		return b.carried(level, f, r.trials, ceiling)
	}
}

// carried looks at a ceiling that is met again, by all that the link delivered: a
// program that was too slow to take it keeps nothing below the ceiling.
func (b bitrate) carried(level float64, f Finding, trials []record.Trial, ceiling units.Bitrate) Finding {
	all := &rate{unit: UnitBitrate, format: FormatBitrate, limit: ceiling.String()}
	for _, t := range trials {
		all.add(t, delivered(t))
	}
	again, e, ok := all.estimate(level)
	if ok {
		again = all.atMost(again, e, float64(ceiling))
	}
	again.Rejected = f.Rejected
	return again
}

// received collects what programs received of the link's traffic; refuse says why a
// trial is no evidence, or nothing.
func (b bitrate) received(trials []record.Trial, refuse func(record.Trial) string) *rate {
	r := &rate{unit: UnitBitrate, format: FormatBitrate}
	for _, t := range trials {
		why := ""
		switch {
		case t.Throughput == nil:
			why = noResult(t)
		case t.Throughput.Traffic != string(b.traffic):
			why = "it measured " + t.Throughput.Traffic + ", but the link's traffic is " + string(b.traffic)
		case refuse != nil:
			why = refuse(t)
		}
		if why != "" {
			r.reject(t, why)
			continue
		}
		r.add(t, float64(t.Throughput.BitsPerSecond))
	}
	return r
}

// delivered is the rate at the receiver's socket, even if its program was too slow to
// take it.
func delivered(t record.Trial) float64 {
	v := float64(t.Throughput.BitsPerSecond)
	if s := t.Duration.Seconds(); s > 0 && t.Delivery != nil {
		v += 8 * float64(t.Delivery.ReceiverDrops) * float64(t.Delivery.DatagramBytes) / s
	}
	return v
}

func (b bitrate) sender(wanted float64, limit string) sender {
	return sender{
		limit: limit, wanted: wanted, all: b.all, unit: UnitBitrate, format: FormatBitrate,
		offered: func(t record.Trial) float64 {
			if t.Throughput == nil || t.Delivery == nil {
				return 0
			}
			return float64(t.Delivery.SentBits)
		},
		held: func(t record.Trial) (uint64, time.Duration) { return t.Throughput.Held, t.Throughput.HeldFor },
		bits: wanted,
	}
}

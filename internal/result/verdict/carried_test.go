// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// traffic is intervals of 2 s in both directions, with these packet rates of packets of
// 1066 bytes, 1000 of them payload. 0 is an interval without a report.
func traffic(rates ...uint64) (all []record.Trial) {
	for _, d := range []Direction{{"a.p", "b.p"}, {"b.p", "a.p"}} {
		for i, r := range rates {
			t := record.Trial{Link: "ab", From: d.From, To: d.To, Round: i, Quantity: record.QStream, Duration: 2 * time.Second}
			if r > 0 {
				t.Delivery = &record.Delivery{PacketRate: r, ReceivedBits: 8 * 1066 * r}
			}
			all = append(all, t)
		}
	}
	return all
}

func TestRatesOfTraffic(t *testing.T) {
	ends := []plan.End{{Function: "a", Port: "p", Face: chain.FaceNative}, {Function: "b", Port: "p", Face: chain.FaceNative}}
	l := plan.Link{Name: "ab", Ends: ends, Requires: chain.Requires{MinBitrate: units.Bitrate(8_000_000), PacketRate: 1000}}
	for name, c := range map[string]struct {
		rates []uint64
		word  Word
		text  string
	}{
		"enough":                {[]uint64{1000, 1200, 1100, 1000, 1000}, Met, "traffic reached it for 10s"},
		"enough at some time":   {[]uint64{3, 1000, 1200, 1100, 1000, 1000, 3, 3}, Met, "traffic reached it for 10s"},
		"too short":             {[]uint64{9999, 9999, 9999, 9999}, NotMeasurable, "no traffic for 10s"},
		"a break":               {[]uint64{9999, 9999, 9999, 9999, 0, 9999, 9999}, NotMeasurable, "no traffic for 10s"},
		"one interval is slow":  {[]uint64{9999, 9999, 999, 9999, 9999}, NotMeasurable, "which does not show"},
		"none":                  {nil, NotMeasurable, "there is no trial"},
		"a long time, too slow": {[]uint64{10, 10, 10, 10, 10, 10, 10, 10}, NotMeasurable, "which does not show"},
	} {
		for _, v := range JudgeLive(l, traffic(c.rates...)) {
			if v.Verdict != c.word || !strings.Contains(v.Reason, c.text) || v.Verdict == NotMeasurable && v.Needs == "" {
				t.Errorf("%s, %s: %s, %q, needs %q", name, v.Requirement, v.Verdict, v.Reason, v.Needs)
			}
		}
	}
	// One direction is not enough.
	for _, v := range JudgeLive(l, traffic(1000, 1000, 1000, 1000, 1000)[:5]) {
		if v.Verdict != NotMeasurable {
			t.Errorf("one direction: %s", v.Verdict)
		}
	}
	// Packets too small for their headers have no payload.
	if got := payload(&record.Delivery{PacketRate: 1000, ReceivedBits: 8 * 60 * 1000}); got != 0 {
		t.Errorf("payload of 60-byte packets: %v", got)
	}
}

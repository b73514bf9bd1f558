// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// observed is intervals of an application's own traffic in one direction: packets a
// second of 1066 bytes, all stamped, each within 100 µs. 0 is an interval without one.
func observed(d Direction, rates ...uint64) (all []record.Trial) {
	for i, n := range rates {
		t := record.Trial{
			ID: fmt.Sprintf("%s-%d", d.From, i), Link: "ab", From: d.From, To: d.To, Round: i, Quantity: record.QStream, Duration: time.Second, Passive: true,
		}
		if n > 0 {
			bits := 8 * 1066 * n
			t.OneWay = &record.OneWay{Latency: histogram(samples{int64(n), 90 * time.Microsecond}), Min: 90 * time.Microsecond, Max: 90 * time.Microsecond}
			t.Delivery = &record.Delivery{Sent: n, Received: n, OfferedBits: bits, SentBits: bits, ReceivedBits: bits, PacketRate: n}
		}
		all = append(all, t)
	}
	return all
}

func TestOwnTrafficIsJudged(t *testing.T) {
	ratio := units.Ratio(0.01)
	ab, ba := Direction{"a.p", "b.p"}, Direction{"b.p", "a.p"}
	steady := func(d Direction) []record.Trial { return observed(d, 250, 250, 250, 250, 250, 250, 250, 250, 250, 250) }
	ends := []plan.End{{Function: "a", Port: "p", Face: chain.FaceNative}, {Function: "b", Port: "p", Face: chain.FaceNative}}
	within := chain.Requires{Latency: units.Duration(100 * time.Microsecond), LossRatio: &ratio, MinBitrate: 1_000_000, PacketRate: 200}
	for name, c := range map[string]struct {
		requires chain.Requires
		load     units.Bitrate
		trials   []record.Trial
		want     map[string]Word
		reason   string // in that of every verdict
	}{
		"met": {within, 0, append(steady(ab), steady(ba)...),
			map[string]Word{"latency": Met, "packet_loss_ratio": Met, "min_bitrate": Met, "packet_rate": Met}, ""},
		"missed": {chain.Requires{Latency: 1, PDV: units.Duration(time.Millisecond)}, 0, append(steady(ab), steady(ba)...),
			map[string]Word{"latency": Missed, "packet_delay_variation": Met}, ""},
		"one direction is silent": {within, 0, append(steady(ab), observed(ba, 0, 0, 0, 0)...),
			map[string]Word{"latency": NotMeasurable, "packet_loss_ratio": NotMeasurable, "min_bitrate": NotMeasurable, "packet_rate": NotMeasurable}, "the application sent nothing"},
		"what it cannot show": {chain.Requires{MaxBitrate: 1, MTU: 1500}, 0, append(steady(ab), steady(ba)...),
			map[string]Word{"max_bitrate": NotMeasurable, "mtu": NotMeasurable}, "does not show it"},
		"as much as the load": {chain.Requires{Latency: units.Duration(100 * time.Microsecond)}, 2_000_000, append(steady(ab), steady(ba)...),
			map[string]Word{"latency": Met}, ""},
		"less than the load": {chain.Requires{Latency: units.Duration(100 * time.Microsecond), LossRatio: &ratio}, 4_000_000, append(steady(ab), steady(ba)...),
			map[string]Word{"latency": NotMeasurable, "packet_loss_ratio": NotMeasurable}, "the application's traffic was 2Mbps, but the link's load is 4Mbps"},
		"late even under less than the load": {chain.Requires{Latency: 1}, 4_000_000, append(steady(ab), steady(ba)...),
			map[string]Word{"latency": Missed}, "lighter than declared"},
	} {
		l := plan.Link{Name: "ab", Ends: ends, Requires: c.requires, Load: c.load}
		verdicts := Judge(OfRun(l, c.trials), c.trials)
		if len(verdicts) != len(c.want) {
			t.Errorf("%s: %d verdicts, want %d", name, len(verdicts), len(c.want))
		}
		for _, v := range verdicts {
			if v.Verdict != c.want[v.Requirement] || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("%s: %s is %s, want %s: %s", name, v.Requirement, v.Verdict, c.want[v.Requirement], v.Reason)
			}
			if !strings.Contains(v.Method, "passive") || v.Verdict != NotMeasurable && !strings.Contains(v.Basis, "passive") {
				t.Errorf("%s: %s does not say how it was measured: %q, %q", name, v.Requirement, v.Method, v.Basis)
			}
			if v.Verdict == NotMeasurable && v.Needs == "" {
				t.Errorf("%s: %s does not say what it needs", name, v.Requirement)
			}
		}
	}
}

// An idle direction is not worth a longer run, too few samples are.
func TestSilenceIsNotProlonged(t *testing.T) {
	ab, ba := Direction{"a.p", "b.p"}, Direction{"b.p", "a.p"}
	ends := []plan.End{{Function: "a", Port: "p", Face: chain.FaceNative}, {Function: "b", Port: "p", Face: chain.FaceNative}}
	l := plan.Link{Name: "ab", Ends: ends, Requires: chain.Requires{Latency: units.Duration(time.Millisecond)}}
	trials := append(observed(ab, 100, 100, 100, 100), observed(ba, 0, 0, 0, 0)...)
	open := Undecided(OfRun(l, trials), trials)
	if len(open) != 1 || open[0].Direction != ab {
		t.Errorf("open: %+v", open)
	}
}

// A record of a run that nobody's traffic passed has no figures of instruments.
func TestInstrumentsDoNotMixWithOwnTraffic(t *testing.T) {
	l := plan.Link{Name: "f1u", Ends: []plan.End{{Function: "cu-up", Port: "f1u"}, {Function: "du", Port: "f1u"}}}
	own := trial(record.QStream, Direction{endA, endB}, 0)
	own.Passive = true
	all := append(both(3, record.QStream, func(*record.Trial) {}), own)
	if got := ofLink(OfRun(l, all), all); len(got) != 1 || !got[0].Passive {
		t.Errorf("%d trials count", len(got))
	}
}

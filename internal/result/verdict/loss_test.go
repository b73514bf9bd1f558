// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

func needsLoss(r units.Ratio) chain.Requires { return chain.Requires{LossRatio: &r} }

func TestLossMet(t *testing.T) {
	v := judgeOne(t, link(needsLoss(1e-4)), both(3, record.QStream, delivery(20_000, 0)), Met, "", "")
	if v.Required.Text != "≤ 1e-4 at 400Mbps" || v.Measured.Text != "0 (0 of 60000)" {
		t.Errorf("required %q, measured %q", v.Required, v.Measured)
	}
}

func TestLossMissed(t *testing.T) {
	judgeOne(t, link(needsLoss(1e-4)), both(3, record.QStream, delivery(20_000, 40)), Missed, "more than 1e-4", "")
	judgeOne(t, link(needsLoss(1e-4)), both(3, record.QStream, delivery(20_000, 20_000)), Missed, "", "")
}

func TestLossNeedsThreeOverRatio(t *testing.T) {
	judgeOne(t, link(needsLoss(1e-4)), both(3, record.QStream, delivery(9_990, 0)), NotMeasurable, "at least 30000", "about 30000 packets")
	judgeOne(t, link(needsLoss(1e-4)), both(3, record.QStream, delivery(10_000, 0)), Met, "", "")
}

func TestLossTooCloseToDecide(t *testing.T) {
	judgeOne(t, link(needsLoss(1e-4)), both(3, record.QStream, delivery(20_000, 1)), NotMeasurable, "too close", "packets")
}

func TestLossTrialsRejected(t *testing.T) {
	for name, spoil := range map[string]func(*record.Delivery){
		"the sender reached only": func(d *record.Delivery) { d.SentBits = d.OfferedBits * 9 / 10 },
		"the sender reached 4":    func(d *record.Delivery) { d.SentBits = d.OfferedBits * 11 / 10 },
		"negative loss":           func(d *record.Delivery) { d.Received = d.Sent + 5 },
		"it offered":              func(d *record.Delivery) { d.OfferedBits, d.SentBits = 10, 10 },
	} {
		trials := both(4, record.QStream, delivery(20_000, 0))
		for i := range trials {
			if i%4 < 2 {
				spoil(trials[i].Delivery)
			}
		}
		v := judgeOne(t, link(needsLoss(1e-4)), trials, NotMeasurable, name, "1 trial more")
		if n := len(v.Directions[0].Rejected); n != 2 {
			t.Errorf("%s: %d trials listed as rejected, want 2", name, n)
		}
	}
}

// One packet more or less is no other load, however few were sent.
func TestOnePacketMoreIsTheLoad(t *testing.T) {
	for _, c := range []struct {
		sent    uint64
		rate    uint64 // sent, of 100
		reached bool
	}{
		{5, 120, true}, {5, 107, true}, {5, 84, true}, {5, 126, false}, {5, 80, false}, {1, 50, false}, {0, 0, false}, {1000, 94, false}, {1000, 95, true},
	} {
		if got := reached(&record.Delivery{Sent: c.sent, SentBits: c.rate, OfferedBits: 100}); got != c.reached {
			t.Errorf("%d packets at %d %% of the rate: %v", c.sent, c.rate, got)
		}
	}
}

// A sender held back by the link's own shaper cannot send in time; its unsent packets
// count as lost.
func TestLossBehindShaperIsMissed(t *testing.T) {
	trials := both(3, record.QStream, func(tr *record.Trial) {
		delivery(20_000, 0)(tr)
		tr.Delivery.SentBits = load / 4
		tr.Env.Qdiscs = map[string]string{tr.From: "tbf rate 100Mbit burst 64Kb"}
	})
	judgeOne(t, link(needsLoss(1e-2)), trials, Missed, "", "")
}

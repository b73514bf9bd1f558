// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

func onTimeLink(share units.Ratio) Link {
	l := link(chain.Requires{OnTime: share})
	l.Slots = &chain.Fronthaul{SCS: 30, PRB: 273, Layers: 4}
	return l
}

// arrived is a trial of which so many messages came, and the others were lost.
func arrived(sent uint64, w record.Window) func(*record.Trial) {
	return func(t *record.Trial) {
		delivery(sent, sent-w.Received())(t)
		t.Windows = record.Windows{"u_plane": w}
	}
}

func TestOnTimeMet(t *testing.T) {
	v := judgeOne(t, onTimeLink(0.99999), both(3, record.QStream, arrived(200_000, record.Window{OnTime: 200_000})), Met, "at least 99.999% of the messages", "")
	if v.Required.Text != "≥ 99.999% within the receive windows" || v.Measured.Text != "100% (all but 0 of 600000)" || *v.Bound.Value < 0.99999 {
		t.Errorf("required %q, measured %q, bound %q", v.Required.Text, v.Measured.Text, v.Bound.Text)
	}
	if want := "eCPRI, 273 PRB of 30 kHz, 4 per symbol, one way"; v.Basis != want {
		t.Errorf("basis %q", v.Basis)
	}
}

// Early, late and lost messages are alike: the radio unit has no use for them.
func TestOnTimeMissed(t *testing.T) {
	for name, w := range map[string]record.Window{
		"early": {Early: 100, OnTime: 199_900}, "late": {Late: 100, OnTime: 199_900}, "lost": {OnTime: 199_900},
	} {
		v := judgeOne(t, onTimeLink(0.9999), both(3, record.QStream, arrived(200_000, w)), Missed, "fewer than 99.99% of the messages", "")
		if v.Measured.Text != "99.95% (all but 300 of 600000)" || *v.Bound.Value >= 0.9999 {
			t.Errorf("%s: measured %q, bound %q", name, v.Measured.Text, v.Bound.Text)
		}
	}
	judgeOne(t, onTimeLink(0.9), both(3, record.QStream, func(tr *record.Trial) { delivery(1000, 1000)(tr) }), Missed, "", "")
}

func TestOnTimeNeedsEnoughMessages(t *testing.T) {
	judgeOne(t, onTimeLink(0.99999), both(3, record.QStream, arrived(90_000, record.Window{OnTime: 90_000})), NotMeasurable, "at least 300000", "about 300000 messages")
	judgeOne(t, onTimeLink(0.9999), both(3, record.QStream, arrived(20_000, record.Window{OnTime: 19_999, Late: 1})), NotMeasurable, "too close", "messages")
}

// What the sender was too late for, and what its program did not read, is no fault of the link.
func TestOnTimeLeavesOutTheSendersLateness(t *testing.T) {
	v := judgeOne(t, onTimeLink(0.999), both(3, record.QStream, arrived(20_000, record.Window{OnTime: 15_000, SentLate: 5000})), Met, "", "")
	if v.Measured.Text != "100% (all but 0 of 45000)" {
		t.Errorf("measured %q", v.Measured.Text)
	}
	v = judgeOne(t, onTimeLink(0.999), both(3, record.QStream, func(tr *record.Trial) {
		arrived(20_000, record.Window{OnTime: 15_000})(tr)
		tr.Delivery.ReceiverDrops = 5000
	}), Met, "", "")
	if v.Measured.Text != "100% (all but 0 of 45000)" {
		t.Errorf("measured %q", v.Measured.Text)
	}
}

func TestOnTimeTrialsRejected(t *testing.T) {
	for want, spoil := range map[string]func(*record.Trial){
		"not compared with receive windows": func(tr *record.Trial) { tr.Windows = nil },
		"sent every message too late":       func(tr *record.Trial) { tr.Windows["u_plane"] = record.Window{SentLate: 20_000} },
		"the sender reached only":           func(tr *record.Trial) { tr.Delivery.SentBits /= 2 },
	} {
		trials := both(3, record.QStream, arrived(20_000, record.Window{OnTime: 20_000}))
		for i := range trials {
			spoil(&trials[i])
		}
		judgeOne(t, onTimeLink(0.999), trials, NotMeasurable, want, "")
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{1: "100%", 0.99999: "99.999%", 0.9: "90%", 0.91358: "91.4%", 0.999993217: "99.999322%", 0.9995: "99.95%", 0: "0%"} {
		if got := percent(share); got != want {
			t.Errorf("%v is %s, not %s", share, got, want)
		}
	}
}

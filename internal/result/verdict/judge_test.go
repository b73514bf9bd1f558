// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

var needsMTU = chain.Requires{MTU: 9000}

func mtuRounds(wanted int, passed ...bool) []record.Trial {
	i := 0
	return both(len(passed), record.QPathMTU, func(t *record.Trial) {
		t.PathMTU = &record.PathMTU{Wanted: wanted, Passed: passed[i%len(passed)]}
		i++
	})
}

func TestMTU(t *testing.T) {
	judgeOne(t, link(needsMTU), mtuRounds(9000, true, true), Met, "in every round", "")
	judgeOne(t, link(needsMTU), mtuRounds(9000, false, false), Missed, "in no round", "")
	judgeOne(t, link(needsMTU), mtuRounds(9000, true, false), NotMeasurable, "disagree", "a path")
	judgeOne(t, link(needsMTU), mtuRounds(1500, true), NotMeasurable, "no trial sent", "one trial")
	judgeOne(t, link(needsMTU), mtuRounds(1500, false), Missed, "in no round", "")
	failed := both(1, record.QPathMTU, func(tr *record.Trial) { tr.Error = "ping: not found" })
	judgeOne(t, link(needsMTU), failed, NotMeasurable, "ping: not found", "one trial")
}

func TestNothingRequiredGivesNoVerdict(t *testing.T) {
	if vs := Judge(link(chain.Requires{}), goodputs(1, 2, 3)); len(vs) != 0 {
		t.Errorf("verdicts without requirements: %+v", vs)
	}
}

func TestUplinkIsNotMeasurable(t *testing.T) {
	l := link(needsMin)
	l.Uplinks = []string{"uplink:eth0"}
	judgeOne(t, l, goodputs(9*gig, 9*gig, 9*gig), NotMeasurable, "on the far side of a host interface", "far side of uplink:eth0")
	judgeOne(t, l, goodputs(1*gig, 1*gig, 1*gig), Missed, "", "")
	l.Directions, l.Uplinks = nil, nil
	judgeOne(t, l, nil, NotMeasurable, "no two ports", "second port")
}

func TestFromPlan(t *testing.T) {
	l := FromPlan(plan.Link{
		Name: "n3", Load: 7, Requires: needsMTU,
		Ends: []plan.End{{Function: "a", Port: "p"}, {Function: "b", Port: "p"}, {Uplink: "eth0"}, {Function: "c", Port: "p"}},
	})
	if len(l.Directions) != 6 || l.Directions[0] != (Direction{"a.p", "b.p"}) {
		t.Errorf("directions %v, want the six between three ports", l.Directions)
	}
	if len(l.Uplinks) != 1 || l.Uplinks[0] != "uplink:eth0" || l.Load != 7 || l.Requires.MTU != 9000 {
		t.Errorf("link %+v", l)
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		words []Word
		want  int
	}{
		{nil, 0},
		{[]Word{Met, Met}, 0},
		{[]Word{Met, NotMeasurable}, 5},
		{[]Word{NotMeasurable, Missed, Met}, 4},
		{[]Word{Missed, NotMeasurable}, 4},
		{[]Word{"gibberish"}, 5},
	} {
		var vs []Verdict
		for _, w := range c.words {
			vs = append(vs, Verdict{Verdict: w})
		}
		if got := ExitCode(vs); got != c.want {
			t.Errorf("ExitCode(%q) = %d, want %d", c.words, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		FormatDuration(86_123):    "86.1us",
		FormatDuration(1_499_999): "1.5ms",
		FormatDuration(0):         "0s",
		FormatBitrate(9.41249e9):  "9.41Gbps",
		FormatBitrate(-5):         "0bps",
		FormatPacketRate(108_999): "109kpps",
		seconds(30):               "30 s",
		seconds(1800):             "30 min",
		seconds(36_000):           "10 h",
		plural(1, "trial"):        "1 trial",
		plural(2, "trial"):        "2 trials",
		share(0.00012345):         "1.23e-4",
	} {
		if got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
}

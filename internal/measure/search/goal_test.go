// SPDX-License-Identifier: Apache-2.0

package search

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The goals of the example search of RFC 9971, appendix C.
var exampleGoals = []Goal{
	{Name: "RFC2544", Trial: time.Minute, Sum: time.Minute},
	{Name: "TST009", Trial: time.Minute, Sum: 2 * time.Minute, ExceedRatio: 0.5},
	{Name: "1s final", Trial: time.Second, Sum: 2 * time.Minute, LossRatio: 0.005, ExceedRatio: 0.5},
	{Name: "20% exceed", Trial: time.Minute, Sum: time.Minute, LossRatio: 0.005, ExceedRatio: 0.2},
}

// trialsOf are n trials of a length at 1 Mpps with a loss ratio.
func trialsOf(n int, d time.Duration, loss float64) []Trial {
	out := make([]Trial, n)
	for i := range out {
		sent := 1e6 * d.Seconds()
		out[i] = Trial{Load: 1e6, Duration: d, Outcome: Outcome{Sent: uint64(sent), Received: uint64(math.Round(sent * (1 - loss)))}}
	}
	return out
}

// The published example: each goal's class of the same trials at six points in
// time. Its tables call the load a lower bound of "20% exceed" at points 5 and 6.
// The exceed ratios there, 42.9 % and 27.3 %, make an upper bound by its own rule
// and its code in appendix A; the code is what binds.
func TestClassifyAsInTheRFC(t *testing.T) {
	const u, l, n = UpperBound, LowerBound, Undecided
	points := []struct {
		added []Trial
		want  [4]Class
	}{
		{trialsOf(59, time.Second, 0), [4]Class{n, n, n, n}},
		{trialsOf(1, time.Second, 0.01), [4]Class{u, n, n, n}},
		{trialsOf(59, time.Second, 0.01), [4]Class{u, n, n, u}},
		{trialsOf(1, time.Second, 0), [4]Class{u, n, l, u}},
		{trialsOf(1, time.Minute, 0.001), [4]Class{u, n, l, u}},
		{trialsOf(1, time.Minute, 0), [4]Class{u, l, l, u}},
	}
	var trials []Trial
	for i, p := range points {
		trials = append(trials, p.added...)
		for j, g := range exampleGoals {
			if got := g.Classify(trials); got != p.want[j] {
				t.Errorf("point %d, goal %s: class %v, want %v", i+1, g.Name, got, p.want[j])
			}
		}
	}
	for name, want := range map[string]float64{"TST009": 1e6, "1s final": 1e6, "20% exceed": 999e3} {
		for _, g := range exampleGoals {
			if got := g.ConditionalThroughput(trials); g.Name == name && math.Abs(got-want) > 1e-6 {
				t.Errorf("goal %s: conditional throughput %g, want %g", name, got, want)
			}
		}
	}
}

// Trials that a goal could skip count as total loss.
func TestConditionalThroughputIsCareful(t *testing.T) {
	g := Goal{Trial: time.Second, Sum: 10 * time.Second, LossRatio: 0.005, ExceedRatio: 0.5}
	if got := g.ConditionalThroughput(trialsOf(4, time.Second, 0)); got != 0 {
		t.Errorf("4 of 10 trials made: %g packets/s, want 0: the fifth may have lost everything", got)
	}
	five := append(trialsOf(4, time.Second, 0), trialsOf(1, time.Second, 0.004)...)
	if got := g.ConditionalThroughput(five); math.Abs(got-996e3) > 1 {
		t.Errorf("5 of 10 trials made: %g packets/s, want the rate of the worst, 996000", got)
	}
	if got := g.ConditionalThroughput(trialsOf(3, time.Millisecond, 0)); got != 0 {
		t.Errorf("short trials only: %g packets/s, want 0", got)
	}
}

func TestRejectedTrialsDoNotCount(t *testing.T) {
	g := Goal{Trial: time.Second, Sum: time.Second}
	trials := trialsOf(1, time.Second, 0)
	trials[0].Rejected = "negative loss"
	if got := g.Classify(trials); got != Undecided {
		t.Errorf("a rejected trial makes class %v", got)
	}
	if got := g.ConditionalThroughput(trials); got != 0 {
		t.Errorf("a rejected trial makes a throughput of %g", got)
	}
}

// Ten trials of a tenth of a second are a second, though 0.1 has no exact
// binary form.
func TestDurationsAddUp(t *testing.T) {
	g := Goal{Trial: 100 * time.Millisecond, Sum: time.Second}
	if got := g.Classify(trialsOf(10, 100*time.Millisecond, 0)); got != LowerBound {
		t.Errorf("ten trials of 0.1 s are class %v, want a lower bound", got)
	}
	if got := g.Classify(trialsOf(9, 100*time.Millisecond, 0)); got != Undecided {
		t.Errorf("nine trials of 0.1 s are class %v, want undecided", got)
	}
}

func TestGoalSaysWhatItMeans(t *testing.T) {
	got := PDR(time.Second, 21*time.Second).String()
	for _, want := range []string{"PDR", "0.5 %", "trials of 1s", "21s", "50 %"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	cases := []struct {
		sent, received uint64
		reason         string
		short          bool
	}{
		{1000, 1000, "", false},
		{951, 951, "", false},
		{949, 949, "too few", true},
		{1049, 1049, "", false},
		{1051, 1051, "too many", false},
		{1000, 1001, "negative loss", false},
	}
	for _, c := range cases {
		reason, short := Check(1000, time.Second, Outcome{Sent: c.sent, Received: c.received})
		if (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) || short != c.short {
			t.Errorf("%d sent, %d received of 1000: %q, short %v; want %q, %v", c.sent, c.received, reason, short, c.reason, c.short)
		}
	}
	if reason, _ := Check(10, time.Second, Outcome{Sent: 9, Received: 9}); reason != "" {
		t.Errorf("one packet of ten missing: %s; a trial of few packets may miss one", reason)
	}
}

// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/record"
)

const us = time.Microsecond

var needsLatency = chain.Requires{Latency: chain.Duration(1500 * us), Percentile: 99}

func TestLatencyMet(t *testing.T) {
	v := judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(0, samples{995, 86 * us}, samples{5, 900 * us})), Met, "whole round trip", "")
	if v.Measured != "86us round trip at p99" {
		t.Errorf("measured %q", v.Measured)
	}
	if len(v.Trials) != 6 || len(v.Directions) != 2 {
		t.Errorf("rests on %d trials in %d directions, want 6 in 2", len(v.Trials), len(v.Directions))
	}
}

func TestLatencyMissed(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(0, samples{900, 86 * us}, samples{100, 3200 * us})), Missed, "half of the round trip", "")
}

func TestLatencyBetweenHalfAndWhole(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(0, samples{900, 86 * us}, samples{100, 2500 * us})), NotMeasurable, "half of it is not proven", "one-way time stamps")
}

// 1.5 % of the round trips beyond twice the budget may be 0.75 % in each
// direction: within what p99 allows, so that nothing is proven.
func TestLatencyLateSamplesMayBeShared(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(0, samples{98_500, 86 * us}, samples{1500, 3200 * us})), NotMeasurable, "", "one-way time stamps")
}

func TestLatencyTooFewSamples(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(0, samples{300, 86 * us})), NotMeasurable, "p99 takes 1000", "about 1000 samples (3.33 s at 300/s)")
}

func TestLatencyTooCloseToDecide(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(0, samples{1986, 86 * us}, samples{14, 1900 * us})), NotMeasurable, "too close", "samples (")
}

func TestLatencyTooFewTrials(t *testing.T) {
	judgeOne(t, link(needsLatency), both(2, record.QLatency, latency(0, samples{100_000, 86 * us})), NotMeasurable, "2 usable trials", "1 trial more")
}

func TestLatencyStoppedPeerIsMissed(t *testing.T) {
	dead := both(3, record.QLatency, func(tr *record.Trial) {
		latency(20)(tr)
		tr.Load.Achieved = 0
		tr.Error = "no answer within 1s"
	})
	v := judgeOne(t, link(needsLatency), dead, Missed, "never answered", "")
	if v.Measured != "60 of 60 lost" {
		t.Errorf("measured %q", v.Measured)
	}
}

func TestLatencyLossesCountAsLate(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(50, samples{950, 86 * us})), Missed, "never answered", "")
	judgeOne(t, link(needsLatency), both(3, record.QLatency, latency(15, samples{985, 86 * us})), NotMeasurable, "", "one-way time stamps")
}

// One bad trial of three must not be averaged away, nor taken for certain.
func TestLatencyOneBadTrial(t *testing.T) {
	i := 0
	mixed := both(3, record.QLatency, func(tr *record.Trial) {
		if i++; i%3 == 0 {
			latency(0, samples{9_900, 86 * us}, samples{100, 5000 * us})(tr)
			return
		}
		latency(0, samples{10_000, 86 * us})(tr)
	})
	judgeOne(t, link(needsLatency), mixed, NotMeasurable, "too close", "")
}

func TestLatencyLoadNotReached(t *testing.T) {
	light := func(fill func(*record.Trial)) []record.Trial {
		return both(3, record.QLatency, func(tr *record.Trial) { fill(tr); tr.Load.Achieved = load / 2 })
	}
	v := judgeOne(t, link(needsLatency), light(latency(0, samples{1000, 86 * us})), NotMeasurable, "the load was 200Mbps", "trials")
	if len(v.Directions[0].Rejected) != 3 {
		t.Errorf("rejected %q, want all three trials listed", v.Directions[0].Rejected)
	}
	judgeOne(t, link(needsLatency), light(latency(0, samples{1000, 9000 * us})), Missed, "lighter than declared", "")
}

func TestLatencyOfAnotherLoadIsNoEvidence(t *testing.T) {
	idle := both(3, record.QLatency, func(tr *record.Trial) { latency(0, samples{1000, 86 * us})(tr); tr.Load = nil })
	judgeOne(t, link(needsLatency), idle, NotMeasurable, "it ran under 0bps", "")
	l := link(needsLatency)
	l.Load = 0
	judgeOne(t, l, idle, Met, "", "")
}

// One side measures both ways: the answer comes back.
func TestLatencyFromOneSide(t *testing.T) {
	trials := both(3, record.QLatency, latency(0, samples{1000, 86 * us}))[:3]
	judgeOne(t, link(needsLatency), trials, Met, "", "")
}

func TestInstrumentFailureIsNoEvidence(t *testing.T) {
	failed := both(3, record.QLatency, func(tr *record.Trial) { tr.Error = "sockperf: exit status 127" })
	judgeOne(t, link(needsLatency), failed, NotMeasurable, "exit status 127", "3 trials more")
}

func TestMalformedHistogramIsNoEvidence(t *testing.T) {
	bad := both(3, record.QLatency, func(tr *record.Trial) {
		latency(0, samples{1000, 86 * us})(tr)
		tr.Latency.Histogram.Digits = 77
	})
	judgeOne(t, link(needsLatency), bad, NotMeasurable, "77 digits", "3 trials more")
}

var needsPDV = chain.Requires{PDV: chain.Duration(200 * us), Percentile: 99}

func TestPDVMet(t *testing.T) {
	// A long but constant delay has no variation.
	judgeOne(t, link(needsPDV), both(3, record.QLatency, latency(0, samples{990, 5000 * us}, samples{10, 5100 * us})), Met, "round-trip variation", "")
}

func TestPDVMissed(t *testing.T) {
	judgeOne(t, link(needsPDV), both(3, record.QLatency, latency(0, samples{900, 80 * us}, samples{100, 600 * us})), Missed, "half of the round-trip variation", "")
}

func TestPDVNotMeasurable(t *testing.T) {
	judgeOne(t, link(needsPDV), both(3, record.QLatency, latency(0, samples{900, 80 * us}, samples{100, 400 * us})), NotMeasurable, "", "one-way time stamps")
}

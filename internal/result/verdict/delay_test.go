// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

const us = time.Microsecond

var needsLatency = chain.Requires{Latency: units.Duration(1500 * us), Percentile: 99}

func TestLatencyMet(t *testing.T) {
	v := judgeOne(t, link(needsLatency), both(3, record.QStream, latency(0, samples{998, 86 * us}, samples{2, 1900 * us})), Met, "one-way latency stays within", "")
	if v.Measured.Text != "86us one-way latency at p99" {
		t.Errorf("measured %q", v.Measured)
	}
	if len(v.Trials) != 6 || len(v.Directions) != 2 {
		t.Errorf("rests on %d trials in %d directions, want 6 in 2", len(v.Trials), len(v.Directions))
	}
}

func TestLatencyMissed(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QStream, latency(0, samples{900, 86 * us}, samples{100, 1600 * us})), Missed, "exceeds 1.5ms for more than 0.01", "")
}

// Each direction is judged by its own packets.
func TestLatencyOfTheWorseDirectionDecides(t *testing.T) {
	trials := both(3, record.QStream, func(tr *record.Trial) {
		took := 86 * us
		if tr.From == endB {
			took = 2000 * us
		}
		latency(0, samples{1000, took})(tr)
	})
	v := judgeOne(t, link(needsLatency), trials, Missed, "", "")
	if v.Direction != endB+" → "+endA || v.Directions[0].Verdict != Met {
		t.Errorf("decided by %s, the other is %s", v.Direction, v.Directions[0].Verdict)
	}
	judgeOne(t, link(needsLatency), trials[:3], NotMeasurable, "no trial in this direction", "3 trials of stream")
}

func TestLatencyTooFewSamples(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QStream, latency(0, samples{300, 86 * us})), NotMeasurable, "p99 needs 1000", "about 1000 samples (3.33 s at 300/s)")
}

func TestLatencyTooCloseToDecide(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QStream, latency(0, samples{1986, 86 * us}, samples{14, 1900 * us})), NotMeasurable, "too close", "samples (")
	judgeOne(t, link(needsLatency), both(3, record.QStream, latency(0, samples{1978, 86 * us}, samples{22, 1900 * us})), NotMeasurable, "rule out chance", "more than 3 trials")
}

func TestLatencyTooFewTrials(t *testing.T) {
	judgeOne(t, link(needsLatency), both(2, record.QStream, latency(0, samples{100_000, 86 * us})), NotMeasurable, "2 usable trials", "1 trial more")
}

func TestLatencyStoppedPeerIsMissed(t *testing.T) {
	dead := both(3, record.QStream, func(tr *record.Trial) {
		latency(20)(tr)
		tr.Error = "no answer within 1s"
	})
	v := judgeOne(t, link(needsLatency), dead, Missed, "never arrived", "")
	if v.Measured.Text != "60 of 60 lost" {
		t.Errorf("measured %q", v.Measured)
	}
}

func TestLatencyLossesCountAsLate(t *testing.T) {
	judgeOne(t, link(needsLatency), both(3, record.QStream, latency(50, samples{950, 86 * us})), Missed, "never arrived", "")
	judgeOne(t, link(needsLatency), both(3, record.QStream, latency(12, samples{988, 86 * us})), NotMeasurable, "rule out chance", "more than 3 trials")
}

// A packet that a slow receiver dropped may or may not have been late.
func TestLatencyOfWhatTheReceiverDroppedIsUnknown(t *testing.T) {
	dropped := both(3, record.QStream, func(tr *record.Trial) {
		latency(50, samples{950, 86 * us})(tr)
		tr.Delivery.ReceiverDrops = 50
	})
	judgeOne(t, link(needsLatency), dropped, NotMeasurable, "their delay is unknown", "a sender and receiver that keep up")
}

// A port that makes the generator wait counts; late wake-ups do not.
func TestLatencyWhereTheSenderWasLate(t *testing.T) {
	late := func(held uint64) []record.Trial {
		return both(3, record.QStream, func(tr *record.Trial) {
			latency(0, samples{1000, 86 * us})(tr)
			tr.OneWay.Intended = histogram(samples{900, 90 * us}, samples{100, 4000 * us})
			tr.OneWay.Unsent, tr.OneWay.Held = 2, held
		})
	}
	judgeOne(t, link(needsLatency), late(0), Met, "", "")
	judgeOne(t, link(needsLatency), late(3), NotMeasurable, "rule out chance", "more than 3 trials")
}

// One bad trial of three must be neither averaged away nor taken as certain.
func TestLatencyOneBadTrial(t *testing.T) {
	i := 0
	mixed := both(3, record.QStream, func(tr *record.Trial) {
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
		return both(3, record.QStream, func(tr *record.Trial) { fill(tr); tr.Delivery.SentBits = load / 2 })
	}
	v := judgeOne(t, link(needsLatency), light(latency(0, samples{1000, 86 * us})), NotMeasurable, "the sender reached only 200Mbps", "trials")
	if len(v.Directions[0].Rejected) != 3 {
		t.Errorf("rejected %q, want all three trials listed", v.Directions[0].Rejected)
	}
	judgeOne(t, link(needsLatency), light(latency(0, samples{1000, 9000 * us})), Missed, "lighter than declared", "")
}

func TestLatencyOfAnotherLoadIsNoEvidence(t *testing.T) {
	other := both(3, record.QStream, func(tr *record.Trial) {
		latency(0, samples{1000, 86 * us})(tr)
		tr.Delivery.OfferedBits = load / 4
	})
	judgeOne(t, link(needsLatency), other, NotMeasurable, "its load was 100Mbps", "")
	idle := both(3, record.QProbe, latency(0, samples{1000, 86 * us}))
	judgeOne(t, link(needsLatency), idle, NotMeasurable, "no trial", "3 trials of stream")
	l := link(needsLatency)
	l.Load = 0
	judgeOne(t, l, idle, Met, "", "")
}

func TestCrossChecksNeverDecide(t *testing.T) {
	trials := both(3, record.QStream, latency(0, samples{1000, 9000 * us}))
	for i := range trials {
		trials[i].CrossCheck = true
	}
	judgeOne(t, link(needsLatency), trials, NotMeasurable, "no trial", "")
}

func TestInstrumentFailureIsNoEvidence(t *testing.T) {
	failed := both(3, record.QStream, func(tr *record.Trial) { tr.Error = "draygen: exit status 127" })
	judgeOne(t, link(needsLatency), failed, NotMeasurable, "exit status 127", "3 trials more")
}

func TestMalformedHistogramIsNoEvidence(t *testing.T) {
	bad := both(3, record.QStream, func(tr *record.Trial) {
		latency(0, samples{1000, 86 * us})(tr)
		tr.OneWay.Latency.Bits = 77
	})
	judgeOne(t, link(needsLatency), bad, NotMeasurable, "77 bits", "3 trials more")
}

var needsPDV = chain.Requires{PDV: units.Duration(200 * us), Percentile: 99}

func TestPDVMet(t *testing.T) {
	// A long but constant delay has no variation.
	judgeOne(t, link(needsPDV), both(3, record.QStream, latency(0, samples{990, 5000 * us}, samples{10, 5100 * us})), Met, "one-way variation", "")
}

func TestPDVMissed(t *testing.T) {
	judgeOne(t, link(needsPDV), both(3, record.QStream, latency(0, samples{900, 80 * us}, samples{100, 400 * us})), Missed, "one-way variation exceeds", "")
}

// TestLatencyOfALateSender: a sender that was late by more than the budget shows a busy
// machine, unless its port made it wait. It does not explain loss.
func TestLatencyOfALateSender(t *testing.T) {
	slow := func(lateTrials int, held uint64) []record.Trial {
		return both(6, record.QStream, func(tr *record.Trial) {
			latency(0, samples{900, 86 * us}, samples{100, 9000 * us})(tr)
			tr.OneWay.Held = held
			tr.OneWay.Lateness = histogram(samples{1000, 50 * us})
			if tr.Round < lateTrials {
				tr.Marks = []string{record.MarkBusy, record.MarkLate}
				tr.OneWay.Lateness = histogram(samples{950, 50 * us}, samples{50, 4000 * us})
			}
		})
	}
	judgeOne(t, link(needsLatency), slow(6, 0), NotMeasurable, "in 6 of 6 trials the sender itself was over 1.5ms late", "an idle machine")
	judgeOne(t, link(needsLatency), slow(4, 0), NotMeasurable, "in 4 of 6 trials", "an idle machine")
	judgeOne(t, link(needsLatency), slow(3, 0), Missed, "exceeds 1.5ms", "")
	judgeOne(t, link(needsLatency), slow(6, 9), Missed, "exceeds 1.5ms", "")
	for long, want := range map[time.Duration]Word{us: NotMeasurable, 2 * time.Millisecond: Missed} {
		held := slow(6, 1)
		for i := range held {
			held[i].OneWay.HeldFor = long
		}
		if vs := Judge(link(needsLatency), held); vs[0].Verdict != want {
			t.Errorf("held for %v: %s, %s", long, vs[0].Verdict, vs[0].Reason)
		}
	}
	lossy := slow(6, 0)
	for i := range lossy {
		lossy[i].Delivery.Sent, lossy[i].Delivery.Lost = 1500, 500
	}
	judgeOne(t, link(needsLatency), lossy, Missed, "never arrived", "")
	// Lateness below the budget excuses nothing.
	wide := link(chain.Requires{Latency: units.Duration(5000 * us), Percentile: 95})
	judgeOne(t, wide, slow(6, 0), Missed, "exceeds 5ms", "")
}

// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

const gig = 1_000_000_000

var (
	needsMin  = chain.Requires{MinBitrate: 4 * gig}
	needsMax  = chain.Requires{MaxBitrate: 4 * gig}
	needsRate = chain.Requires{PacketRate: 100_000}
)

func TestMinBitrate(t *testing.T) {
	v := judgeOne(t, link(needsMin), goodputs(9.4*gig, 9.5*gig, 9.6*gig), Met, "even the lower bound", "")
	if v.Measured.Text != "9.5Gbps" || v.Bound.Text != "≥ 9.33Gbps" {
		t.Errorf("measured %q, bound %q", v.Measured, v.Bound)
	}
	judgeOne(t, link(needsMin), goodputs(3.4*gig, 3.5*gig, 3.6*gig), Missed, "even the upper bound", "")
	judgeOne(t, link(needsMin), goodputs(3*gig, 4*gig, 6*gig), NotMeasurable, "between the bounds", "trials of this length")
	modest := chain.Requires{MinBitrate: gig / 100}
	judgeOne(t, link(modest), goodputs(0.5*gig, 4*gig, 7.4*gig), Met, "even the lower bound", "")
	judgeOne(t, link(modest), goodputs(0.001*gig, 4*gig, 4*gig), NotMeasurable, "between the bounds", "")
	judgeOne(t, link(needsMin), goodputs(9*gig, 9*gig), NotMeasurable, "2 usable trials", "1 trial more")
}

func TestMinBitrateStoppedPeerIsMissed(t *testing.T) {
	dead := goodputs(0, 0, 0)
	for i := range dead {
		dead[i].Error = "iperf3: unable to connect: no route to host"
	}
	judgeOne(t, link(needsMin), dead, Missed, "", "")
}

func TestMinBitrateInstrumentFailureIsNoEvidence(t *testing.T) {
	failed := both(3, record.QThroughput, func(tr *record.Trial) { tr.Error = "iperf3: not found" })
	judgeOne(t, link(needsMin), failed, NotMeasurable, "iperf3: not found", "")
}

// The worst direction decides, and every direction is kept.
func TestMinBitrateWorstDirection(t *testing.T) {
	trials := goodputs(9*gig, 9*gig, 9*gig)
	for i := range trials[3:] {
		trials[3+i].Throughput.BitsPerSecond = 2 * gig
		trials[3+i].Marks = []string{"oversubscribed", "busy"}
	}
	trials[0].Marks = []string{"busy"}
	v := judgeOne(t, link(needsMin), trials, Missed, "", "")
	if v.Direction != endB+" → "+endA || v.Directions[0].Verdict != Met || v.Directions[1].Verdict != Missed {
		t.Errorf("direction %q decides, of %+v", v.Direction, v.Directions)
	}
	if len(v.Marks) != 2 || v.Marks[0] != "busy" || v.Marks[1] != "oversubscribed" {
		t.Errorf("marks %q, want the union, sorted", v.Marks)
	}
}

func TestMissingDirectionIsNotMeasurable(t *testing.T) {
	judgeOne(t, link(needsMin), goodputs(9*gig, 9*gig, 9*gig)[:3], NotMeasurable, "no trial in this direction", "3 trials of throughput")
	judgeOne(t, link(needsMin), nil, NotMeasurable, "no trial", "3 trials")
}

func TestWarmupAndOtherLinksNeverCount(t *testing.T) {
	trials := goodputs(9*gig, 9*gig, 9*gig)
	spoil := goodputs(1, 1, 1)
	for i := range spoil {
		spoil[i].Warmup = i%2 == 0
		if !spoil[i].Warmup {
			spoil[i].Link = "other"
		}
	}
	v := judgeOne(t, link(needsMin), append(trials, spoil...), Met, "", "")
	if len(v.Trials) != 6 {
		t.Errorf("rests on %d trials, want 6", len(v.Trials))
	}
}

func TestMaxBitrate(t *testing.T) {
	judgeOne(t, link(needsMax), goodputs(3.8*gig, 3.81*gig, 3.82*gig), Met, "upper bound stays within", "")
	judgeOne(t, link(needsMax), goodputs(9.4*gig, 9.5*gig, 9.6*gig), Missed, "lower bound exceeds", "")
	judgeOne(t, link(needsMax), goodputs(3*gig, 4*gig, 6*gig), NotMeasurable, "between the bounds", "")
	judgeOne(t, link(needsMax), goodputs(0, 0, 0), NotMeasurable, "no packets passed", "")
}

// pps fills a trial in which the sender sent and the receiver received that many.
func pps(sent, received uint64) func(*record.Trial) {
	return func(t *record.Trial) {
		t.Delivery = &record.Delivery{
			OfferedBits: 110_000 * 18 * 8, SentBits: sent * 18 * 8, ReceivedBits: received * 18 * 8,
			DatagramBytes: 18, FrameBytes: 64, Sent: sent, Received: received, Lost: sent - received,
			OfferedRate: 110_000, SentRate: sent, PacketRate: received,
		}
	}
}

func TestPacketRate(t *testing.T) {
	judgeOne(t, link(needsRate), both(3, record.QPacketRate, pps(110_000, 109_000)), Met, "", "")
	judgeOne(t, link(needsRate), both(3, record.QPacketRate, pps(110_000, 60_000)), Missed, "", "")
	judgeOne(t, link(needsRate), both(3, record.QPacketRate, pps(80_000, 80_000)), NotMeasurable, "generator-bound", "a sender that can offer 100kpps")
}

// A sender is not to blame if its port or a shaper on it held it back, or if it offered
// the rate elsewhere.
func TestPacketRateShortfallIsTheLinks(t *testing.T) {
	slow := both(3, record.QPacketRate, pps(20_000, 20_000))
	shaped := both(3, record.QPacketRate, func(tr *record.Trial) {
		pps(20_000, 20_000)(tr)
		tr.Env.Qdiscs = map[string]string{tr.From: "tbf rate 10Mbit burst 4Kb lat 50ms"}
	})
	judgeOne(t, link(needsRate), shaped, Missed, "", "")
	held := both(3, record.QPacketRate, func(tr *record.Trial) {
		pps(20_000, 20_000)(tr)
		tr.OneWay = &record.OneWay{Held: 9}
	})
	judgeOne(t, link(needsRate), held, Missed, "", "")
	able := trial(record.QPacketRate, Direction{"x", "y"}, 0)
	able.Link = "loopback"
	pps(300_000, 300_000)(&able)
	judgeOne(t, link(needsRate), append(slow, able), Missed, "", "")
	able.Instrument.Name = "another"
	judgeOne(t, link(needsRate), append(slow, able), NotMeasurable, "generator-bound", "")
}

func TestPacketRateStoppedPeerIsMissed(t *testing.T) {
	judgeOne(t, link(needsRate), both(3, record.QPacketRate, pps(110_000, 0)), Missed, "", "")
}

func TestShapedBelow(t *testing.T) {
	for qdisc, want := range map[string]bool{
		"":                               false,
		"pfifo limit 100":                false,
		"tbf rate 10Mbit burst 4Kb":      true,
		"tbf rate 10Mbps":                true,
		"htb rate 1.5Gbit ceil 2Gbit":    false,
		"htb rate 999999bit":             true,
		"tbf rate 99999999999999999Tbit": false,
	} {
		tr := record.Trial{From: "a", Env: record.Environment{Qdiscs: map[string]string{"a": qdisc}}}
		if got := shapedBelow(tr, 100e6); got != want {
			t.Errorf("%q below 100 Mbit/s: %v, want %v", qdisc, got, want)
		}
	}
}

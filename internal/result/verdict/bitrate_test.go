// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// udp is a link whose bitrate is measured with datagrams.
func udp(requires chain.Requires) Link {
	l := link(requires)
	l.Traffic = chain.TrafficUDP
	return l
}

// blast is trials with a generator at full speed: bits sent, received, and dropped by a
// slow receiver.
func blast(sent, received, dropped float64, marks ...string) []record.Trial {
	const payload = 8 * 1472
	i := 0.0
	return both(4, record.QThroughput, func(t *record.Trial) {
		wobble := 1 + i/1000
		i++
		t.Instrument.Name, t.Marks = "draygen", marks
		t.Throughput = &record.Throughput{Traffic: "udp", BitsPerSecond: uint64(received * wobble)}
		t.Delivery = &record.Delivery{
			SentBits: uint64(sent * wobble), ReceivedBits: uint64(received * wobble), DatagramBytes: 1472, FrameBytes: 1518,
			Sent: uint64(sent / payload), Received: uint64(received / payload), ReceiverDrops: uint64(dropped / payload),
			Lost: uint64((sent - received) / payload),
		}
	})
}

func TestDatagramsAreJudgedByWhatIsReceived(t *testing.T) {
	v := judgeOne(t, udp(needsMin), blast(6*gig, 5*gig, 0.5*gig), Met, "even the lower bound", "")
	if v.Basis != "udp, 1,472-byte payload, 1,518-byte frames, one way" {
		t.Errorf("basis %q", v.Basis)
	}
	judgeOne(t, udp(needsMin), blast(6*gig, 3*gig, 0), Missed, "even the upper bound", "")
	judgeOne(t, udp(needsMin), blast(6*gig, 0, 0), Missed, "even the upper bound", "")
}

// The link did carry what it delivered to a receiver without a CPU; but nobody can use
// it.
func TestASlowReceiverIsNotTheLink(t *testing.T) {
	judgeOne(t, udp(needsMin), blast(6*gig, 3*gig, 3*gig), NotMeasurable, "too slow to read", "a receiver that keeps up")
}

// A sender that could not offer the bitrate says nothing about the link, unless its
// port, or the link's shaper, held it back.
func TestASlowSenderIsNotTheLink(t *testing.T) {
	judgeOne(t, udp(needsMin), blast(3*gig, 3*gig, 0), NotMeasurable, "generator-bound", "more or faster cores")
	judgeOne(t, udp(needsMin), blast(3*gig, 3*gig, 0, record.MarkBusy, record.MarkLate), NotMeasurable, "busy with other work", "an idle machine")
	held := blast(3*gig, 3*gig, 0, record.MarkBusy)
	shaped := blast(3*gig, 3*gig, 0, record.MarkBusy)
	for i := range held {
		held[i].Throughput.Held = 7
		shaped[i].Env.Qdiscs = map[string]string{shaped[i].From: "tbf rate 3.1Gbit burst 1Mb"}
	}
	judgeOne(t, udp(needsMin), held, Missed, "even the upper bound", "")
	judgeOne(t, udp(needsMin), shaped, Missed, "even the upper bound", "")
}

// A generator at its own ceiling is not the link's fault because its port was full once.
func TestAPortThatIsFullOnceIsNotTheLimit(t *testing.T) {
	trials := blast(3*gig, 3*gig, 0)
	for _, c := range []struct {
		long time.Duration
		want Word
		why  string
	}{{time.Millisecond, NotMeasurable, "generator-bound"}, {900 * time.Millisecond, Missed, "even the upper bound"}} {
		for i := range trials {
			trials[i].Throughput.Held, trials[i].Throughput.HeldFor = 1, c.long
		}
		judgeOne(t, udp(needsMin), trials, c.want, c.why, "")
	}
}

func TestTrialsOfOtherTrafficAreNoEvidence(t *testing.T) {
	judgeOne(t, udp(needsMin), goodputs(9*gig, 9*gig, 9*gig), NotMeasurable, "it measured tcp, but the link's traffic is udp", "3 trials more")
	judgeOne(t, link(needsMin), blast(9*gig, 9*gig, 0), NotMeasurable, "it measured udp, but the link's traffic is tcp", "3 trials more")
}

func TestACeilingMustBeTried(t *testing.T) {
	judgeOne(t, udp(needsMax), blast(6*gig, 3.9*gig, 0), Met, "upper bound stays within", "")
	judgeOne(t, udp(needsMax), blast(6*gig, 5*gig, 0), Missed, "lower bound exceeds", "")
	judgeOne(t, udp(needsMax), blast(3*gig, 3*gig, 0), NotMeasurable, "the ceiling was not tested", "")
	judgeOne(t, udp(needsMax), blast(6*gig, 3.9*gig, 2.1*gig), Missed, "lower bound exceeds", "") // a slow program keeps no ceiling
	shaped := blast(3.9*gig, 3.9*gig, 0)
	for i := range shaped {
		shaped[i].Env.Qdiscs = map[string]string{shaped[i].From: "tbf rate 4Gbit burst 1Mb"}
	}
	judgeOne(t, udp(needsMax), shaped, Met, "upper bound stays within", "")
}

// TestPacketRateOfADisturbedSender: a generator without a CPU is not the link's fault,
// even if it reached the rate elsewhere.
func TestPacketRateOfADisturbedSender(t *testing.T) {
	trials := both(3, record.QPacketRate, func(tr *record.Trial) {
		if tr.From == endA {
			pps(110_000, 109_000)(tr)
			return
		}
		pps(60_000, 60_000)(tr)
		tr.Marks = []string{record.MarkBusy, record.MarkLate}
	})
	judgeOne(t, link(needsRate), trials, NotMeasurable, "the machine was busy", "an idle machine")
	for i := range trials {
		trials[i].Marks = nil
	}
	judgeOne(t, link(needsRate), trials, Missed, "even the upper bound", "")
}

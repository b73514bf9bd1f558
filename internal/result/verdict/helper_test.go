// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"maps"
	mathbits "math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

const (
	endA = "cu-up.f1u"
	endB = "du.f1u"
	load = 400_000_000
)

// link joins two ports; tests differ only in requires.
func link(requires chain.Requires) Link {
	return Link{
		Name: "f1u", Requires: requires, Traffic: chain.TrafficTCP, Load: load,
		Directions: []Direction{{endA, endB}, {endB, endA}},
	}
}

// trial is an empty trial on that link.
func trial(q record.Quantity, d Direction, round int) record.Trial {
	return record.Trial{
		ID: fmt.Sprintf("%s-%s-%d", q, d.From, round), Link: "f1u", From: d.From, To: d.To,
		Quantity: q, Round: round, Duration: time.Second, Instrument: record.Instrument{Name: "iperf"},
	}
}

// both makes the same rounds in both directions.
func both(rounds int, q record.Quantity, fill func(t *record.Trial)) []record.Trial {
	var out []record.Trial
	for _, d := range link(chain.Requires{}).Directions {
		for i := range rounds {
			t := trial(q, d, i)
			fill(&t)
			out = append(out, t)
		}
	}
	return out
}

// samples is n packets with the same delay.
type samples struct {
	n    int64
	took time.Duration
}

// histogram holds them in log-linear buckets of 64 an octave.
func histogram(parts ...samples) record.Histogram {
	const bits = 6
	n := map[int64]int64{}
	for _, p := range parts {
		if p.n == 0 {
			continue
		}
		v := int64(p.took)
		n[v-v%(int64(1)<<max(0, mathbits.Len64(uint64(v))-1-bits))] += p.n
	}
	lowest := slices.Sorted(maps.Keys(n))
	var counts []int64
	for _, v := range lowest {
		counts = append(counts, n[v])
	}
	h, err := record.FromLogLinear(bits, lowest, counts)
	if err != nil {
		panic(err)
	}
	return h
}

// latency is a stream at the link's load, with some lost packets.
func latency(lost uint64, parts ...samples) func(*record.Trial) {
	h := histogram(parts...)
	received := uint64(h.Total())
	var least, most time.Duration
	for i, p := range parts {
		most = max(most, p.took)
		if i == 0 || p.took < least {
			least = p.took
		}
	}
	return func(t *record.Trial) {
		delivery(received+lost, lost)(t)
		t.OneWay = &record.OneWay{Latency: h, Intended: h, Lateness: histogram(), IPDV: histogram(), Min: least, Max: most}
	}
}

func goodputs(bps ...uint64) []record.Trial {
	i := 0
	return both(len(bps), record.QThroughput, func(t *record.Trial) {
		t.Throughput = &record.Throughput{Traffic: "tcp", BitsPerSecond: bps[i%len(bps)]}
		i++
	})
}

func delivery(sent, lost uint64) func(*record.Trial) {
	return func(t *record.Trial) {
		t.Delivery = &record.Delivery{
			OfferedBits: load, SentBits: load, ReceivedBits: load, DatagramBytes: 1400,
			Sent: sent, Received: sent - lost, Lost: lost,
		}
	}
}

// judgeOne expects one verdict of that word whose reason and needs contain those texts.
func judgeOne(t *testing.T, l Link, trials []record.Trial, want Word, reason, needs string) Verdict {
	t.Helper()
	vs := Judge(l, trials)
	if len(vs) != 1 {
		t.Fatalf("%d verdicts, want 1: %+v", len(vs), vs)
	}
	v := vs[0]
	if v.Verdict != want || !strings.Contains(v.Reason, reason) || !strings.Contains(v.Needs, needs) {
		t.Errorf("verdict %q\n reason %q\n needs %q\n measured %q bound %q\nwant %q, reason with %q, needs with %q",
			v.Verdict, v.Reason, v.Needs, v.Measured, v.Bound, want, reason, needs)
	}
	if (v.Verdict == NotMeasurable) != (v.Needs != "") {
		t.Errorf("verdict %q has needs %q: a verdict has needs exactly if it is not measurable", v.Verdict, v.Needs)
	}
	return v
}

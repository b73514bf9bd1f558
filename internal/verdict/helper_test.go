// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/record"
)

const (
	endA = "cu-up.f1u"
	endB = "du.f1u"
	load = 400_000_000
)

// link joins two ports; requires is all that differs between tests.
func link(requires chain.Requires) Link {
	return Link{
		Name: "f1u", Requires: requires, Load: load,
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

// samples is n round trips of a time.
type samples struct {
	n   int64
	rtt time.Duration
}

func latency(lost uint64, parts ...samples) func(*record.Trial) {
	hdr := hdrhistogram.New(1000, int64(10*time.Second), 3)
	least := time.Hour
	var n uint64
	for _, p := range parts {
		if err := hdr.RecordValues(int64(p.rtt), p.n); err != nil {
			panic(err)
		}
		least, n = min(least, p.rtt), n+uint64(p.n)
	}
	h := record.Histogram{Lowest: 1000, Highest: int64(10 * time.Second), Digits: 3}
	for _, b := range hdr.Distribution() {
		if b.Count > 0 {
			h.Counts = append(h.Counts, record.BucketCount{Value: b.To, Count: b.Count})
		}
	}
	return func(t *record.Trial) {
		t.Load = &record.Load{Offered: load, Achieved: load}
		t.Latency = &record.Latency{Histogram: h, Sent: n + lost, Lost: lost}
		if n > 0 {
			t.Latency.MinRTT = least
		}
	}
}

func goodputs(bps ...uint64) []record.Trial {
	i := 0
	return both(len(bps), record.QThroughput, func(t *record.Trial) {
		t.Throughput = &record.Throughput{BitsPerSecond: bps[i%len(bps)]}
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

// judgeOne expects one verdict of that word whose reason and needs contain
// those texts.
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
		t.Errorf("verdict %q has needs %q: exactly the not measurable say what it would take", v.Verdict, v.Needs)
	}
	return v
}

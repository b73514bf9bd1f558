// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"math"
	"time"

	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// judge compares live traffic with the link's requirements. Each interval is one
// trial.
func judge(l plan.Link, intervals [][]telemetry.Flow) []verdict.Verdict {
	var trials []record.Trial
	for i, interval := range intervals {
		for _, f := range interval {
			trials = append(trials, asTrials(f, i)...)
		}
	}
	return verdict.JudgeLive(l, trials)
}

// asTrials is one interval as records of the functions' own packets. Without a
// declared load, delays are judged from probes, losses from the stream.
func asTrials(f telemetry.Flow, number int) []record.Trial {
	t := record.Trial{
		Schema: record.Schema, Link: f.Link, From: f.From, To: f.To, Round: number, Duration: f.Interval, Marks: []string{},
	}
	if f.Latency.Count > 0 {
		t.OneWay = oneWay(f)
	}
	if offered := f.Sent + f.Unsent; offered > 0 && offered >= f.Sent { // a function may report inconsistent counts
		t.Delivery = delivery(f)
	}
	var trials []record.Trial
	for _, q := range []record.Quantity{record.QProbe, record.QStream} {
		t.Quantity, t.ID = q, fmt.Sprintf("live-%s-%d", q, number)
		if q == record.QProbe {
			t.Delivery = sampled(t.Delivery, f.Latency.Count)
		}
		trials = append(trials, t)
	}
	return trials
}

// sampled is a delivery as far as one packet in many was stamped: a lost packet counts
// as late, and must weigh no more than one that arrived.
func sampled(d *record.Delivery, stamped uint64) *record.Delivery {
	if d == nil || d.Received == 0 || stamped >= d.Received {
		return d
	}
	share := float64(stamped) / float64(d.Received)
	s := *d
	s.Lost = uint64(math.Ceil(float64(d.Lost) * share))
	s.Received, s.Sent = stamped, stamped+s.Lost
	return &s
}

// histogramBits keeps a value to within 1/1024, which is finer than what
// functions report.
const histogramBits = 10

// oneWay takes every sample as the end of its bucket, but the least sample as the
// beginning, so that variation is not understated.
func oneWay(f telemetry.Flow) *record.OneWay {
	var lowest, counts []int64
	for _, b := range f.Latency.Buckets {
		low, n := record.LogLinearLowest(clamp(b.High), histogramBits), int64(min(b.Count, math.MaxInt32))
		if last := len(lowest) - 1; last >= 0 && lowest[last] == low {
			counts[last] += n
			continue
		}
		lowest, counts = append(lowest, low), append(counts, n)
	}
	h, _ := record.FromLogLinear(histogramBits, lowest, counts) // the judge refuses impossible values
	first, last := f.Latency.Buckets[0], f.Latency.Buckets[len(f.Latency.Buckets)-1]
	return &record.OneWay{
		Latency: h, Min: time.Duration(first.Low), Max: time.Duration(clamp(last.High)),
	}
}

// clamp limits a function's reported value to the range of a histogram.
func clamp(ns float64) int64 {
	return int64(math.Max(float64(record.HistogramLowest), math.Min(math.Ceil(ns), float64(record.HistogramHighest))))
}

// delivery counts lost packets, not received ones: packets are in flight at both
// ends of an interval.
func delivery(f telemetry.Flow) *record.Delivery {
	sent := f.Sent + f.Unsent
	lost := min(f.Lost, sent) // packets dropped now may have been sent in the previous interval
	bits := uint64(f.Bitrate())
	return &record.Delivery{
		OfferedBits: bits, SentBits: bits, ReceivedBits: bits, Sent: sent, Received: sent - lost, Lost: lost,
		PacketRate: uint64(f.PacketRate()),
	}
}

// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"math"
	"time"

	"github.com/drayage/dray/internal/link/broker"
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
			trials = append(trials, Trial(f, i))
		}
	}
	return verdict.JudgeLive(l, trials)
}

// Trial is one interval as a record of the functions' own packets. It has no Delivery if
// nothing was sent.
func Trial(f telemetry.Flow, number int) record.Trial {
	t := record.Trial{
		Schema: record.Schema, ID: fmt.Sprintf("live-%s-%s-%s-%d", f.Link, f.From, f.To, number), Link: f.Link, From: f.From, To: f.To,
		Quantity: record.QStream, Round: number, Duration: f.Interval, Marks: []string{}, Passive: true,
	}
	if f.Latency.Count > 0 {
		t.OneWay = oneWay(f)
	}
	if offered := f.Sent + f.Unsent; offered > 0 && offered >= f.Sent { // a function may report inconsistent counts
		t.Delivery = delivery(f)
	}
	return t
}

// histogramBits keeps a value to within 1/1024, which is finer than what
// functions report.
const histogramBits = 10

// oneWay knows each delay by its bucket: between its beginning and its end.
func oneWay(f telemetry.Flow) *record.OneWay {
	buckets := f.Latency.Buckets
	first, last := buckets[0], buckets[len(buckets)-1]
	none := record.Histogram{Bits: histogramBits, Counts: []record.BucketCount{}}
	return &record.OneWay{
		Latency: edges(buckets, func(b broker.Bucket) float64 { return b.High }), Intended: none, Lateness: none, IPDV: none,
		Min: time.Duration(clamp(first.Low)), Max: time.Duration(clamp(last.High)),
		Coarse: &record.CoarseTimes{
			Least: edges(buckets, func(b broker.Bucket) float64 { return b.Low }), Min: time.Duration(clamp(first.High)),
		},
	}
}

// edges takes every sample at that edge of its bucket.
func edges(buckets []broker.Bucket, edge func(broker.Bucket) float64) record.Histogram {
	var lowest, counts []int64
	for _, b := range buckets {
		low, n := record.LogLinearLowest(clamp(edge(b)), histogramBits), int64(min(b.Count, math.MaxInt32))
		if last := len(lowest) - 1; last >= 0 && lowest[last] == low {
			counts[last] += n
			continue
		}
		lowest, counts = append(lowest, low), append(counts, n)
	}
	h, err := record.FromLogLinear(histogramBits, lowest, counts)
	if err != nil { // a function may report anything
		return record.Histogram{Bits: histogramBits, Counts: []record.BucketCount{}}
	}
	return h
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

// SPDX-License-Identifier: Apache-2.0

package live

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/result/verdict"
)

// Collector exposes links to Prometheus. Latest returns the links of the latest
// sample; several goroutines may call it.
type Collector struct {
	Latest func() []Link
}

var (
	ofLink = []string{"chain", "link"}
	ofFlow = []string{"chain", "link", "from", "to"}

	descUp         = describe("link_up", "1 while traffic can pass.", ofLink)
	descGeneration = describe("link_generation", "Newest generation of the link.", ofLink)
	descRebinds    = describe("link_rebinds_total", "Generations that ended since the broker started.", ofLink)
	descMemory     = describe("link_memory_bytes", "Memory of the link, data and telemetry.", ofLink)

	descSent       = describe("port_sent_packets_total", "Packets sent, reported by the sender.", ofFlow)
	descReceived   = describe("port_received_packets_total", "Packets received, reported by the receiver.", ofFlow)
	descBytes      = describe("port_received_bytes_total", "Bytes received, reported by the receiver.", ofFlow)
	descLost       = describe("port_lost_packets_total", "Packets that either end dropped, reported by the functions.", ofFlow)
	descNoBuffer   = describe("port_no_buffer_total", "Buffer requests of the sender while the receiver held all buffers.", ofFlow)
	descViolations = describe("port_violations_total", "Protocol violations that the two ends saw in each other.", ofFlow)
	descWaiting    = describe("port_waiting_packets", "Packets waiting when the receiver last looked.", ofFlow)
	descLatency    = describe("port_latency_seconds", "One-way latency of sampled packets, reported by the receiver.", ofFlow)

	descMet = describe("link_requirement_met", "1: met, 0: missed, over the latest intervals; absent while not measurable.",
		append(ofLink[:2:2], "requirement"))
)

func describe(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("dray_"+name, help, labels, nil)
}

// bounds are the upper bounds of the latency buckets, in seconds: 250 ns to
// about 1 s, each twice the one before.
var bounds = prometheus.ExponentialBuckets(250e-9, 2, 23)

// Describe sends the description of every metric.
func (c Collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect sends the metrics of the latest sample.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c.Latest() {
		collectLink(ch, l)
		for _, f := range l.Total {
			collectFlow(ch, l.Chain, f)
		}
	}
}

func collectLink(ch chan<- prometheus.Metric, l Link) {
	up := 0.0
	if l.Status.State == "active" {
		up = 1
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{l.Chain, l.Status.Name}, labels...)...)
	}
	gauge(descUp, up)
	gauge(descGeneration, float64(l.Status.Generation))
	gauge(descMemory, float64(l.Status.Bytes))
	ch <- prometheus.MustNewConstMetric(descRebinds, prometheus.CounterValue, float64(l.Status.Rebinds), l.Chain, l.Status.Name)
	for _, v := range l.Verdicts {
		switch v.Verdict {
		case verdict.Met:
			gauge(descMet, 1, v.Requirement)
		case verdict.Missed:
			gauge(descMet, 0, v.Requirement)
		}
	}
}

func collectFlow(ch chan<- prometheus.Metric, chain string, f telemetry.Flow) {
	labels := []string{chain, f.Link, f.From, f.To}
	for _, c := range []struct {
		desc *prometheus.Desc
		n    uint64
	}{
		{descSent, f.Sent}, {descReceived, f.Received}, {descBytes, f.Bytes},
		{descLost, f.Lost}, {descNoBuffer, f.NoBuffer}, {descViolations, f.Violations},
	} {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(c.n), labels...)
	}
	ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(f.Waiting), labels...)
	sum, buckets := cumulate(f)
	ch <- prometheus.MustNewConstHistogram(descLatency, f.Latency.Count, sum, buckets, labels...)
}

// cumulate converts to Prometheus's form: how many samples are at most each
// bound. A bucket that a bound divides counts as above it. The sum takes every
// sample as the end of its bucket.
func cumulate(f telemetry.Flow) (sum float64, buckets map[float64]uint64) {
	buckets = map[float64]uint64{}
	for _, bound := range bounds {
		buckets[bound] = 0
	}
	for _, b := range f.Latency.Buckets {
		high := b.High / 1e9
		sum += high * float64(b.Count)
		for _, bound := range bounds {
			if high <= bound {
				buckets[bound] += b.Count
			}
		}
	}
	return sum, buckets
}

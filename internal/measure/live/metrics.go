// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/result/verdict"
)

// Collector exposes links to Prometheus.
type Collector struct {
	latest func() []Link
	chain  func(name string) []string // values of the labels that name a chain
	descs  descriptions
}

// NewCollector exposes the links of this host's chains. latest returns the links of the
// latest sample; several goroutines may call it.
func NewCollector(latest func() []Link) *Collector {
	return &Collector{latest, func(name string) []string { return []string{name} }, describe("chain")}
}

// NewNamespacedCollector exposes the links of chains that are named "namespace/chain",
// with a label for each part.
func NewNamespacedCollector(latest func() []Link) *Collector {
	split := func(name string) []string {
		namespace, chain, _ := strings.Cut(name, "/")
		return []string{namespace, chain}
	}
	return &Collector{latest, split, describe("namespace", "chain")}
}

type descriptions struct {
	up, generation, rebinds, memory, verdict                            *prometheus.Desc
	sent, received, bytes, lost, noBuffer, violations, waiting, latency *prometheus.Desc
	class                                                               classDescriptions
}

// describe names the metrics; chain are the labels that name a chain.
func describe(chain ...string) descriptions {
	link := append(slices.Clip(chain), "link")
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("dray_"+name, help, append(slices.Clip(link), labels...), nil)
	}
	flow := func(name, help string) *prometheus.Desc { return desc("port_"+name, help, "from", "to") }
	return descriptions{
		up:         desc("link_up", "1 while traffic can pass."),
		generation: desc("link_generation", "Newest generation of the link."),
		rebinds:    desc("link_rebinds_total", "Generations that ended since the broker started."),
		memory:     desc("link_memory_bytes", "Memory of the link, data and telemetry."),
		verdict: desc("link_requirement_verdict", "1 for the verdict on a requirement over the latest intervals, and 0 for the other verdicts.",
			"requirement", "verdict"),

		sent:       flow("sent_packets_total", "Packets sent, reported by the sender."),
		received:   flow("received_packets_total", "Packets received, reported by the receiver."),
		bytes:      flow("received_bytes_total", "Bytes received, reported by the receiver."),
		lost:       flow("lost_packets_total", "Packets that either end dropped, reported by the functions."),
		noBuffer:   flow("no_buffer_total", "Buffer requests of the sender while the receiver held all buffers."),
		violations: flow("violations_total", "Protocol violations that the two ends saw in each other."),
		waiting:    flow("waiting_packets", "Packets waiting when the receiver last looked."),
		latency:    flow("latency_seconds", "One-way latency of sampled packets, reported by the receiver."),

		class: describeClasses(desc),
	}
}

// words are the values of the label "verdict", which have no space.
var words = map[verdict.Word]string{verdict.Met: "met", verdict.Missed: "missed", verdict.NotMeasurable: "not_measurable"}

// bounds are the upper bounds of the latency buckets, in seconds: 250 ns to
// about 1 s, each twice the one before.
var bounds = prometheus.ExponentialBuckets(250e-9, 2, 23)

// Describe sends the description of every metric.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	d := &c.descs
	for _, one := range []*prometheus.Desc{
		d.up, d.generation, d.rebinds, d.memory, d.verdict, d.sent, d.received, d.bytes, d.lost, d.noBuffer, d.violations, d.waiting, d.latency,
	} {
		ch <- one
	}
	d.class.describe(ch)
}

// Collect sends the metrics of the latest sample.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c.latest() {
		c.collectLink(ch, l)
		for _, f := range l.Total {
			c.collectFlow(ch, l.Chain, f)
		}
		for i := range l.Status.Ends {
			c.collectClasses(ch, l, &l.Status.Ends[i])
		}
	}
}

func (c *Collector) collectLink(ch chan<- prometheus.Metric, l Link) {
	labels := append(c.chain(l.Chain), l.Status.Name)
	gauge := func(d *prometheus.Desc, v float64, more ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append(slices.Clip(labels), more...)...)
	}
	gauge(c.descs.up, oneIf(l.Status.State == broker.StateActive))
	gauge(c.descs.generation, float64(l.Status.Generation))
	gauge(c.descs.memory, float64(l.Status.Bytes))
	ch <- prometheus.MustNewConstMetric(c.descs.rebinds, prometheus.CounterValue, float64(l.Status.Rebinds), labels...)
	for _, v := range l.Verdicts {
		for word, value := range words {
			gauge(c.descs.verdict, oneIf(v.Verdict == word), v.Requirement, value)
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (c *Collector) collectFlow(ch chan<- prometheus.Metric, chain string, f telemetry.Flow) {
	labels := append(c.chain(chain), f.Link, f.From, f.To)
	for _, counter := range []struct {
		desc *prometheus.Desc
		n    uint64
	}{
		{c.descs.sent, f.Sent}, {c.descs.received, f.Received}, {c.descs.bytes, f.Bytes},
		{c.descs.lost, f.Lost}, {c.descs.noBuffer, f.NoBuffer}, {c.descs.violations, f.Violations},
	} {
		ch <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, float64(counter.n), labels...)
	}
	ch <- prometheus.MustNewConstMetric(c.descs.waiting, prometheus.GaugeValue, float64(f.Waiting), labels...)
	sum, buckets := cumulate(f)
	ch <- prometheus.MustNewConstHistogram(c.descs.latency, f.Latency.Count, sum, buckets, labels...)
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

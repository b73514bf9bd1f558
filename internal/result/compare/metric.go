// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// Units of metrics.
const (
	bitrate    = "bit/s"
	packetRate = "packets/s"
	perSecond  = "/s"
	nanosecond = "ns"
	lossRatio  = "ratio"
	octets     = "B"
	cores      = "CPUs"
	cycles     = "cycles/packet"
	ringShare  = "share"
	watt       = "W"
	joule      = "J"
)

// loadMax is the matrix's word for "as fast as the port takes packets".
const loadMax = "max"

// metric is one figure of a trial.
type metric struct {
	name   string
	unit   string
	higher bool // is better
	// value reads it from a trial; ok is false if the trial does not support it.
	value func(record.Trial) (v float64, ok bool)
	// counts counts events among samples instead; such metrics are proportions.
	counts func(record.Trial) (c stats.Cluster, ok bool)
}

// maximum is the suffix of metrics that are the largest of a trial's samples.
const maximum = ", maximum"

// percentiles are the percentiles that are compared.
var percentiles = []float64{50, 90, 99, 99.9, 99.99}

// metrics are all figures, in the order of the tables.
func metrics() []metric {
	list := []metric{
		{"throughput", bitrate, true, func(t record.Trial) (float64, bool) {
			if t.Throughput == nil {
				return 0, false
			}
			return float64(t.Throughput.BitsPerSecond), true
		}, nil},
		{"packet rate", packetRate, true, rate, nil},
		{"packet rate / bare ring", ringShare, true, func(t record.Trial) (float64, bool) {
			v, ok := rate(t)
			// At a stated load the share says nothing about the transport.
			if !ok || t.Bench == nil || t.Bench.Load != loadMax && t.Bench.Search == nil || t.Bench.Limit == nil || t.Bench.Limit.Ring <= 0 {
				return 0, false
			}
			return v / t.Bench.Limit.Ring, true
		}, nil},
		{"generator alone, sending", packetRate, true, ceiling(func(c *record.Ceiling) float64 { return c.Send }), nil},
		{"generator alone, receiving", packetRate, true, ceiling(func(c *record.Ceiling) float64 { return c.Receive }), nil},
		{"requests", perSecond, true, func(t record.Trial) (float64, bool) {
			if t.Requests == nil {
				return 0, false
			}
			return t.Requests.PerSecond, true
		}, nil},
	}
	for _, p := range percentiles {
		list = append(list, metric{fmt.Sprintf("one way, p%g", p), nanosecond, false, quantileOf(p, oneWay), nil})
	}
	list = append(list, metric{"variation (PDV), p99", nanosecond, false, quantileOf(99, variation), nil})
	for _, p := range percentiles {
		list = append(list, metric{fmt.Sprintf("round trip, p%g", p), nanosecond, false, quantileOf(p, roundTrip), nil})
	}
	list = append(list,
		metric{"jitter (RFC 3550)", nanosecond, false, func(t record.Trial) (float64, bool) {
			if !t.HasJitter() || t.Quantity == record.QPacketRate || t.Quantity == record.QFrames {
				return 0, false
			}
			return float64(t.Delivery.Jitter), true
		}, nil},
		metric{"lost", lossRatio, false, nil, lost},
		metric{"not on time", lossRatio, false, nil, untimely},
		metric{"CPUs used", cores, false, cost(func(t record.Trial) float64 { return t.Bench.Cost.Cores }), nil},
		metric{"cycles per packet", cycles, false, cyclesPerPacket, nil},
		metric{"memory", octets, false, cost(func(t record.Trial) float64 { return float64(t.Bench.Cost.Memory) }), nil},
		metric{"largest packet", octets, true, func(t record.Trial) (float64, bool) {
			if t.PathMTU == nil {
				return 0, false
			}
			return float64(t.PathMTU.Largest), true
		}, nil},
	)
	return append(list, ofExperiments()...)
}

// rate is the received rate, or the result of a search, packets/s.
func rate(t record.Trial) (float64, bool) {
	switch {
	case t.Delivery == nil || t.Quantity != record.QPacketRate && t.Quantity != record.QFrames:
		return 0, false
	case t.Bench != nil && t.Bench.Search != nil:
		return t.Bench.Search.Throughput, true
	}
	return float64(t.Delivery.PacketRate), true
}

// ceiling is for trials of the generator alone: in others the ceiling is the error
// budget, and no result.
func ceiling(pick func(*record.Ceiling) float64) func(record.Trial) (float64, bool) {
	return func(t record.Trial) (float64, bool) {
		if t.Quantity != record.QCeiling || t.Bench == nil || t.Bench.Ceiling == nil {
			return 0, false
		}
		return pick(t.Bench.Ceiling), true
	}
}

func cost(pick func(record.Trial) float64) func(record.Trial) (float64, bool) {
	return func(t record.Trial) (float64, bool) {
		if t.Bench == nil || t.Bench.Cost == nil {
			return 0, false
		}
		v := pick(t)
		return v, v > 0
	}
}

// cyclesPerPacket is the TSC ticks of the CPUs used, divided by the packets received
// meanwhile.
func cyclesPerPacket(t record.Trial) (float64, bool) {
	if t.Bench == nil || t.Bench.Cost == nil || t.Bench.Limit == nil || t.Delivery == nil || t.Delivery.PacketRate == 0 {
		return 0, false
	}
	v := t.Bench.Cost.Cores * t.Bench.Limit.TSC / float64(t.Delivery.PacketRate)
	return v, v > 0
}

// lost counts the link's own losses, without packets that the receiver dropped.
func lost(t record.Trial) (stats.Cluster, bool) {
	d := t.Delivery
	if d == nil || d.Sent == 0 || t.Bench != nil && t.Bench.Search != nil {
		return stats.Cluster{}, false
	}
	return stats.Cluster{Events: float64(d.Lost - min(d.Lost, d.ReceiverDrops)), N: float64(d.Sent)}, true
}

// untimely counts the messages that did not arrive in their receive window, lost
// ones included, of those that were sent in time and that the receiver could read.
func untimely(t record.Trial) (stats.Cluster, bool) {
	c, ok := lost(t)
	if !ok || t.Windows == nil {
		return c, false
	}
	w := t.Windows.Sum()
	c.Events += float64(w.Early + w.Late)
	c.N -= float64(w.SentLate + min(t.Delivery.Lost, t.Delivery.ReceiverDrops))
	return c, c.N > 0
}

// quantileOf refuses quantiles that the trial does not support.
func quantileOf(p float64, of func(record.Trial) (*stats.Dist, bool)) func(record.Trial) (float64, bool) {
	return func(t record.Trial) (float64, bool) {
		d, ok := of(t)
		if !ok {
			return 0, false
		}
		v, err := d.Quantile(p)
		return float64(v), err == nil
	}
}

func oneWay(t record.Trial) (*stats.Dist, bool) {
	if t.OneWay == nil || t.Delivery == nil || t.Bench != nil && t.Bench.Search != nil {
		return nil, false
	}
	c, _ := lost(t)
	d, err := stats.NewDist(t.OneWay.Latency, uint64(c.Events), 0)
	return d, err == nil
}

func variation(t record.Trial) (*stats.Dist, bool) {
	d, ok := oneWay(t)
	if !ok {
		return nil, false
	}
	return d.Variation(int64(t.OneWay.Min)), true
}

func roundTrip(t record.Trial) (*stats.Dist, bool) {
	if t.Latency == nil || t.Quantity == record.QWakeup {
		return nil, false
	}
	d, err := stats.NewDist(t.Latency.Histogram, t.Latency.Lost, 0)
	return d, err == nil
}

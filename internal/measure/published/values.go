// SPDX-License-Identifier: Apache-2.0

package published

import (
	"errors"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// Units of the figures, as in records.
const (
	perMicro = 1e3 // ns in a µs
	perMilli = 1e6
	mega     = 1e6
	giga     = 1e9

	perMicroJoule = 1e6 // µJ in a J
)

// values are a trial's figures in rows, in the units of experiment.Figure.
func values(t record.Trial) (map[string]float64, error) {
	v := map[string]float64{}
	switch {
	case t.Quantity == record.QWakeup && t.Latency != nil:
		v["wakeup_max"] = float64(largest(t.Latency.Histogram)) / perMicro
	case t.Throughput != nil:
		v["throughput"] = float64(t.Throughput.BitsPerSecond) / mega
	case t.Requests != nil:
		v["round_trip"] = float64(t.Requests.MeanRTT) / perMilli
	case t.Latency != nil:
		return v, distribution(v, t.Latency.Histogram, t.Latency.Lost)
	case t.Delivery != nil:
		v["packet_rate"] = float64(t.Delivery.PacketRate) / 1e3
		v["sent_rate"] = float64(t.Delivery.SentRate) / 1e3
		v["throughput"] = float64(t.Delivery.ReceivedBits) / mega
		if t.HasJitter() {
			v["jitter"] = float64(t.Delivery.Jitter) / perMilli
		}
		if t.OneWay != nil {
			if err := distribution(v, t.OneWay.Latency, t.Delivery.Lost-min(t.Delivery.Lost, t.Delivery.ReceiverDrops)); err != nil {
				return v, err
			}
			if _, some := v["latency_max"]; some { // the exact one
				v["latency_max"] = float64(t.OneWay.Max) / perMicro
			}
		}
	default:
		return v, errors.New("the instrument gave no result")
	}
	return v, nil
}

// energy adds the figures of energy to those of a trial with frames, or why there are
// none.
func energy(t record.Trial, e *record.Experiment) {
	if t.Bench == nil || t.Bench.Cost == nil {
		return
	}
	c := t.Bench.Cost
	if c.Power == 0 {
		e.Why = map[string]string{"power": c.NoPower, "energy_per_packet": c.NoPower}
		return
	}
	e.Values["power"] = c.Power
	if t.Delivery != nil && t.Delivery.PacketRate > 0 {
		e.Values["energy_per_packet"] = c.Power / float64(t.Delivery.PacketRate) * perMicroJoule
	}
}

// distribution adds the figures of a time histogram; lost packets count as beyond
// all of them.
func distribution(v map[string]float64, h record.Histogram, lost uint64) error {
	bars, err := h.Buckets()
	if err != nil || len(bars) == 0 {
		return err
	}
	var sum, n float64
	for _, b := range bars {
		sum += float64(b.Count) * (float64(b.From) + float64(b.To)) / 2
		n += float64(b.Count)
	}
	v["latency_mean"] = sum / n / perMicro
	v["latency_max"] = float64(largest(h)) / perMicro
	d, err := stats.NewDist(h, lost, 0)
	if err != nil {
		return err
	}
	if p99, err := d.Quantile(99); err == nil { // refused if the samples do not support it
		v["latency_p99"] = float64(p99) / perMicro
	}
	return nil
}

// largest is the highest value that any sample may have had, ns.
func largest(h record.Histogram) int64 {
	if len(h.Counts) == 0 {
		return 0
	}
	return h.Counts[len(h.Counts)-1].Value
}

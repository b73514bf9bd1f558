// SPDX-License-Identifier: Apache-2.0

// Package calibrate turns the records of a calibration chain into evidence for the
// planner. It measures nothing itself.
package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// percentiles are the calibrated percentiles, as far as the samples support them.
var percentiles = []float64{50, 90, 99, 99.9, 99.99}

// chainText runs every kind of trial. Any machine meets its requirements, so nothing
// prevents the measurement.
const chainText = `apiVersion: drayage/v1
kind: Chain
name: %s
policy: {on_infeasible: warn}
functions:
  - {name: a, runtime: process, ports: [{name: p0, face: %s}]}
  - {name: b, runtime: process, ports: [{name: p0, face: %s}]}
links:
  - name: %s
    ends: [a.p0, b.p0]
    transport: %s
    load: 100Mbps
    requires: {latency: 1s, percentile: 99.9, packet_loss_ratio: 1e-3, min_bitrate: 1Mbps, packet_rate: %s}
`

// Chain is the text of the chain file that calibrates a transport.
func Chain(transport string) []byte {
	name := "calibrate-" + transport
	face, rate := "netdev", "2Mpps" // above any socket's rate
	if transport == "shm" {
		face, rate = "native", "20Mpps"
	}
	return []byte(fmt.Sprintf(chainText, name, face, face, transport, transport, rate))
}

// FromTrials returns what the trials prove of a transport: upper bounds of delay and
// loss, lower bounds of rates, always of the worse direction. source names the records.
// An error names the unsupported quantity.
func FromTrials(transport, source string, measured time.Time, trials []record.Trial) (inventory.Calibration, error) {
	c := inventory.Calibration{Transport: transport, Measured: measured, Source: source}
	by := map[record.Quantity]map[string][]record.Trial{}
	for _, t := range trials {
		if t.Warmup || t.CrossCheck || t.Error != "" {
			continue
		}
		if by[t.Quantity] == nil {
			by[t.Quantity] = map[string][]record.Trial{}
		}
		way := t.From + " → " + t.To
		by[t.Quantity][way] = append(by[t.Quantity][way], t)
		c.Marks = union(c.Marks, t.Marks)
	}
	if err := fillDelay(&c, by[record.QStream]); err != nil {
		return c, fmt.Errorf("latency: %w", err)
	}
	var err error
	if err := fillBitrates(&c, by[record.QThroughput]); err != nil {
		return c, fmt.Errorf("throughput: %w", err)
	}
	if c.PacketRate, err = leastRate(by[record.QPacketRate], func(t record.Trial) float64 { return float64(t.Delivery.PacketRate) }); err != nil {
		return c, fmt.Errorf("packet rate: %w", err)
	}
	if c.LossRatio, err = mostLoss(by[record.QStream]); err != nil {
		return c, fmt.Errorf("loss: %w", err)
	}
	return c, nil
}

// fillBitrates separates datagrams from TCP. Ports without a network interface have no
// TCP.
func fillBitrates(c *inventory.Calibration, ways map[string][]record.Trial) error {
	udp, tcp := map[string][]record.Trial{}, map[string][]record.Trial{}
	for way, trials := range ways {
		for _, t := range trials {
			if t.Throughput.Traffic == string(chain.TrafficTCP) {
				tcp[way] = append(tcp[way], t)
				continue
			}
			udp[way] = append(udp[way], t)
			if t.Delivery != nil {
				c.UDPFrame = t.Delivery.FrameBytes
			}
		}
	}
	goodput := func(t record.Trial) float64 { return float64(t.Throughput.BitsPerSecond) }
	var err error
	if c.UDPBitrate, err = leastRate(udp, goodput); err != nil {
		return fmt.Errorf("udp: %w", err)
	}
	if len(tcp) == 0 {
		return nil
	}
	if c.TCPBitrate, err = leastRate(tcp, goodput); err != nil {
		return fmt.Errorf("tcp: %w", err)
	}
	return nil
}

func union(marks, more []string) []string {
	marks = append(marks, more...)
	slices.Sort(marks)
	return slices.Compact(marks)
}

// fillDelay uses the one-way delays of the slower direction, at the percentiles that
// the samples support.
func fillDelay(c *inventory.Calibration, ways map[string][]record.Trial) error {
	if len(ways) == 0 {
		return errNoTrials
	}
	worst := map[float64]int64{}
	for _, trials := range ways {
		var dists, variations []*stats.Dist
		for _, t := range trials {
			d, err := stats.NewDist(t.OneWay.Latency, ownLoss(t), 0)
			if err != nil {
				return fmt.Errorf("trial %s: %w", t.ID, err)
			}
			dists = append(dists, d)
			variations = append(variations, d.Variation(int64(t.OneWay.Min)))
		}
		pool := stats.Pool(dists...)
		for _, p := range percentiles {
			if v, err := pool.Quantile(p); err == nil {
				worst[p] = max(worst[p], v)
			}
		}
		if v, err := stats.Pool(variations...).Quantile(99); err == nil {
			c.PDVp99 = max(c.PDVp99, time.Duration(v))
		}
	}
	for _, p := range percentiles {
		if v, ok := worst[p]; ok {
			c.Latency = append(c.Latency, inventory.LatencyPoint{Percentile: p, Latency: time.Duration(v)})
		}
	}
	if len(c.Latency) == 0 {
		return errors.New("too few samples for any percentile")
	}
	return nil
}

var errNoTrials = errors.New("no trial gave a result")

// leastRate is the lower 95 % bound of the slower direction. If trials differ so much
// that it is not above zero, they are no evidence.
func leastRate(ways map[string][]record.Trial, rate func(record.Trial) float64) (uint64, error) {
	if len(ways) == 0 {
		return 0, errNoTrials
	}
	least := math.Inf(1)
	for _, trials := range ways {
		var values []float64
		for _, t := range trials {
			values = append(values, rate(t))
		}
		e, err := stats.Mean(values)
		if err != nil {
			return 0, err
		}
		if e.Lower <= 0 {
			return 0, fmt.Errorf("trials between %.3g and %.3g differ too much for a figure: calibrate an idle machine, or with more rounds",
				slices.Min(values), slices.Max(values))
		}
		least = min(least, e.Lower)
	}
	return uint64(least), nil
}

// mostLoss is the upper 95 % bound of the direction that loses more.
func mostLoss(ways map[string][]record.Trial) (float64, error) {
	if len(ways) == 0 {
		return 0, errNoTrials
	}
	var most float64
	for _, trials := range ways {
		var clusters []stats.Cluster
		for _, t := range trials {
			clusters = append(clusters, stats.Cluster{Events: float64(ownLoss(t)), N: float64(t.Delivery.Sent)})
		}
		p, err := stats.Clustered(clusters)
		if err != nil {
			return 0, err
		}
		most = max(most, p.Upper)
	}
	return most, nil
}

// ownLoss is the link's own loss, without a slow receiver's drops.
func ownLoss(t record.Trial) uint64 {
	return t.Delivery.Lost - min(t.Delivery.Lost, t.Delivery.ReceiverDrops)
}

// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/result/record"
)

// Crossing is the traffic of one direction of a link in an interval, as probes show it.
type Crossing struct {
	Link, From, To string
	Interval       time.Duration
	Probes, Lost   uint64 // Lost is of Probes
	// Delays are those of probes, in ns: the least and the most that each may be, as two nodes have no
	// common clock, and by how much it exceeds the least of the interval.
	Delays   [][3]int64
	OneClock bool // both ends have one clock, so the least and the most are equal
	// Rounds are delays of this direction and the other together.
	Rounds []int64
	// Full is how many of Probes were as large as MTU allows, and FullLost how many of Lost.
	MTU            int
	Full, FullLost uint64
	// Sent and Missing count the functions' packets, and Bytes what came of them.
	Sent, Missing, Bytes uint64
}

// Trials are the crossing as records: delays of probes, and losses of packets. Each interval is one
// trial; verdict.JudgeProbed judges them.
func (c *Crossing) Trials(number int) []record.Trial {
	t := record.Trial{Schema: record.Schema, Link: c.Link, From: c.From, To: c.To, Round: number, Duration: c.Interval, Marks: []string{}}
	probes, packets := t, t
	probes.Quantity, probes.ID = record.QProbe, fmt.Sprintf("probes-%d", number)
	if n := uint64(len(c.Delays)); n > 0 || c.Lost > 0 && c.Lost == c.Probes {
		probes.OneWay, probes.Delivery = c.oneWay(), &record.Delivery{Sent: n + c.Lost, Received: n, Lost: c.Lost}
	}
	packets.Quantity, packets.ID = record.QStream, fmt.Sprintf("packets-%d", number)
	if c.Sent > 0 {
		lost := min(c.Missing, c.Sent)
		packets.Delivery = &record.Delivery{Sent: c.Sent, Received: c.Sent - lost, Lost: lost}
		if c.Interval > 0 {
			d, bits := packets.Delivery, uint64(8*float64(c.Bytes)/c.Interval.Seconds())
			d.PacketRate = uint64(float64(c.Sent-lost) / c.Interval.Seconds())
			d.OfferedBits, d.SentBits, d.ReceivedBits = bits, bits, bits
		}
	}
	all := []record.Trial{probes, packets}
	if m := c.pathMTU(); m != nil {
		size := t
		size.Quantity, size.ID, size.PathMTU = record.QPathMTU, fmt.Sprintf("mtu-%d", number), m
		all = append(all, size)
	}
	return all
}

// pathMTU says whether the largest probes passed; nil if that is unknown, for example because
// smaller ones were lost as well.
func (c *Crossing) pathMTU() *record.PathMTU {
	switch {
	case c.FullLost < c.Full:
		return &record.PathMTU{Wanted: c.MTU, Passed: true, Largest: c.MTU}
	case c.Full > 0 && c.Lost == c.FullLost && c.Probes > c.Full:
		return &record.PathMTU{Wanted: c.MTU}
	}
	return nil
}

// oneWay has the bounds of every delay.
func (c *Crossing) oneWay() *record.OneWay {
	var bounds [3][]int64
	for _, d := range c.Delays {
		for i := range d {
			bounds[i] = append(bounds[i], d[i])
		}
	}
	var halves []int64
	for _, ns := range c.Rounds {
		halves = append(halves, ns/2)
	}
	if c.OneClock {
		return &record.OneWay{Latency: histogram(bounds[0])}
	}
	return &record.OneWay{
		Latency: histogram(bounds[0]),
		Clocks:  &record.TwoClocks{Latest: histogram(bounds[1]), Above: histogram(bounds[2]), Halves: histogram(halves)},
	}
}

// histogram counts values. The judge takes each at the unfavourable edge of its bucket.
func histogram(values []int64) record.Histogram {
	counts := map[int64]int64{}
	for _, ns := range values {
		ns = min(max(ns, record.HistogramLowest), record.HistogramHighest)
		counts[record.LogLinearLowest(ns, histogramBits)]++
	}
	lowest := slices.Sorted(maps.Keys(counts))
	var n []int64
	for _, ns := range lowest {
		n = append(n, counts[ns])
	}
	h, _ := record.FromLogLinear(histogramBits, lowest, n) // each begins a bucket
	return h
}

// Flow is the crossing as a flow: each delay is taken in the middle of its bounds.
func (c *Crossing) Flow() telemetry.Flow {
	f := telemetry.Flow{
		Link: c.Link, From: c.From, To: c.To, Interval: c.Interval,
		Sent: c.Sent, Received: c.Sent - min(c.Missing, c.Sent), Lost: c.Missing, Bytes: c.Bytes,
	}
	found := map[int]broker.Bucket{}
	for _, d := range c.Delays {
		b := bucketOf(d[0]/2 + d[1]/2)
		b.Count = found[b.Index].Count + 1
		found[b.Index] = b
	}
	for _, b := range found {
		f.Latency.Buckets = append(f.Latency.Buckets, b)
		f.Latency.Count += b.Count
	}
	slices.SortFunc(f.Latency.Buckets, func(a, b broker.Bucket) int { return a.Index - b.Index })
	return f
}

// flowBits gives the buckets of a flow the width that functions' own reports have.
const flowBits = 5

func bucketOf(ns int64) broker.Bucket {
	ns = min(max(ns, record.HistogramLowest), record.HistogramHighest)
	shift := max(0, bits.Len64(uint64(ns))-1-flowBits)
	low := ns >> shift << shift
	return broker.Bucket{Index: shift<<flowBits + int(ns>>shift), Low: float64(low), High: float64(low + 1<<shift)}
}

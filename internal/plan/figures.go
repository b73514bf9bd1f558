// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"strings"
	"time"

	"github.com/drayage/dray/internal/spec/inventory"
)

// figures holds the known performance of one transport: its calibration on this host,
// and stated defaults for values that were not calibrated.
type figures struct {
	now      time.Time              // of the inventory
	measured *inventory.Calibration // nil: none
	stated   *inventory.Calibration // nil: none
}

// figure is one expected value and where it comes from.
type figure struct {
	value  float64 // bit/s, packets/s, ratio, or ns
	source string  // empty: unknown
}

func (f figure) known() bool { return f.source != "" }

func figuresOf(inv *inventory.Inventory, transport string) figures {
	f := figures{now: inv.Host.Time}
	for i := range inv.Calibration {
		c := &inv.Calibration[i]
		if c.Transport == transport && c.Stale == "" && (f.measured == nil || !c.Measured.Before(f.measured.Measured)) {
			f.measured = c
		}
	}
	if d, ok := statedDefaults[transport]; ok {
		f.stated = &d
	}
	return f
}

// pick reads one value from the calibration, or else from the stated defaults; 0 means
// unknown.
func (f figures) pick(value func(*inventory.Calibration) float64) figure {
	if f.measured != nil && value(f.measured) > 0 {
		return figure{value(f.measured), f.sourceOf(f.measured)}
	}
	if f.stated != nil && value(f.stated) > 0 {
		return figure{value(f.stated), statedDefault}
	}
	return figure{}
}

// tcpBitrate is the goodput of one TCP stream.
func (f figures) tcpBitrate() figure {
	return f.pick(func(c *inventory.Calibration) float64 { return float64(c.TCPBitrate) }).of("tcp")
}

// udpBitrate is the goodput of datagrams with that payload. A shorter packet
// costs at most as much as a longer one, so shorter ones reach at least the same packet
// rate. Longer ones are not assumed to carry more bits. Calibrations are over IPv4.
func (f figures) udpBitrate(payload float64) figure {
	return f.pick(func(c *inventory.Calibration) float64 {
		return float64(c.UDPBitrate) * min(1, payload/udpPayload(cmp.Or(c.UDPFrame, statedFrame), ipv4Header))
	}).of("udp")
}

// of names the traffic of the evidence.
func (f figure) of(traffic string) figure {
	if f.known() {
		f.source += ", " + traffic
	}
	return f
}

func (f figures) packetRate() figure {
	return f.pick(func(c *inventory.Calibration) float64 { return float64(c.PacketRate) })
}

// loss needs no special case for a calibration without loss: the upper bound of a ratio
// is never 0.
func (f figures) loss() figure {
	return f.pick(func(c *inventory.Calibration) float64 { return c.LossRatio })
}

// latency returns the latency at the next higher known percentile. If the calibration
// does not reach that far, it uses the stated default, but never less than the
// calibration measured.
func (f figures) latency(percentile float64) figure {
	at := func(c *inventory.Calibration) float64 { return float64(latencyAt(c, percentile)) }
	got := f.pick(at)
	if f.measured == nil || at(f.measured) > 0 || !got.known() {
		return got
	}
	for _, point := range f.measured.Latency {
		got.value = max(got.value, float64(point.Latency))
	}
	return got
}

// pdv is known at p99. Beyond it the latency bounds its own variation, since no packet
// is faster than instantaneous.
func (f figures) pdv(percentile float64) figure {
	if percentile <= 99 {
		if got := f.pick(func(c *inventory.Calibration) float64 { return float64(c.PDVp99) }); got.known() {
			return got
		}
	}
	got := f.latency(percentile)
	if got.known() {
		got.source += ", by its latency"
	}
	return got
}

// latencyAt is 0 if the calibration does not reach the percentile.
func latencyAt(c *inventory.Calibration, percentile float64) time.Duration {
	var best inventory.LatencyPoint
	for _, point := range c.Latency {
		if point.Percentile >= percentile && (best.Percentile == 0 || point.Percentile < best.Percentile) {
			best = point
		}
	}
	return best.Latency
}

// sourceOf names the records, their age and their marks.
func (f figures) sourceOf(c *inventory.Calibration) string {
	source := c.Source
	if len(c.Marks) > 0 {
		source += " [" + strings.Join(c.Marks, ", ") + "]"
	}
	if age := c.Age(f.now); age != "" {
		source += ", " + age
	}
	return source
}

// SPDX-License-Identifier: Apache-2.0

package published

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Streams of the tool queue. The sparse one is that of the tool pingpong.
const (
	sparseBytes  = 64          // of each datagram
	sparseBits   = 1_000_000   // of payload in a second
	sparseDSCP   = 46          // expedited forwarding (RFC 3246)
	bulkFrame    = 1514        // bytes, without FCS
	udpFrame     = 14 + 20 + 8 // bytes of a frame before the datagram
	overload     = 1.2         // the bulk stream of a cell without load, as a multiple of the rate
	queuePackets = 100         // of every queue, so that both faces have the same
	queueBytes   = 100 * 1514  // of a FIFO by bytes
	percent      = 100.0
)

func queueText(inv *inventory.Inventory, c experiment.Cell) string {
	return echoPair(inv, c, queueQos(c))
}

// queueQos is the cell's discipline with the limits above, as a field of the link.
func queueQos(c experiment.Cell) string {
	kind, limit := cmp.Or(c.Queue, "pfifo"), queuePackets
	if kind == "bfifo" {
		limit = queueBytes
	}
	queue := fmt.Sprintf("child: {qdisc: %s, limit: %d}", kind, limit)
	if c.Qdisc == "prio" {
		queue = fmt.Sprintf("classes: [{name: sparse, dscp: [%d], %s}, {name: bulk, %s}]", sparseDSCP, queue, queue)
	}
	return fmt.Sprintf(", qos: {qdisc: %s, rate: %v, %s}", c.Qdisc, c.Rate, queue)
}

// queueLoad is the payload of the bulk stream, or of the only one, in bit/s.
func queueLoad(c experiment.Cell) uint64 {
	return cmp.Or(uint64(c.Offered().Bitrate), uint64(overload*float64(c.Rate)))
}

// queueStreams are the cell's streams: with a message, one at its load; otherwise the sparse one,
// and a bulk one at that load.
func queueStreams(c experiment.Cell, trial time.Duration) instrument.Params {
	p := instrument.Params{Duration: lasts(c, trial)}
	if c.Message > 0 {
		p.Bitrate, p.Frame = queueLoad(c), c.Message+udpFrame
		return p
	}
	p.Bitrate, p.Frame, p.DSCP = sparseBits, sparseBytes+udpFrame, sparseDSCP
	p.Bulk = &instrument.Bulk{Bitrate: queueLoad(c), Frame: bulkFrame}
	return p
}

// queue measures what packets wait, and what arrives, if a queue has more than its rate or nearly so.
func queue(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	from, to, err := ends(live)
	if err != nil {
		return record.Trial{}, err
	}
	t, err := instrument.Draygen{Quantity: record.QStream}.Run(ctx, from, to, queueStreams(c, r.Run.Trial))
	t.Link = live.State.Plan.Links[0].Name
	t.Runtimes = map[string]string{from.Name: string(c.Runtime), to.Name: string(c.Runtime)}
	if err != nil {
		return t, err
	}
	v, err := queueFigures(t)
	t.Experiment = &record.Experiment{Values: v}
	if err != nil {
		return t, err
	}
	return t, keptFull(c, v["throughput"])
}

// queueFigures are the figures of a trial: times and jitter of the packets that arrived.
func queueFigures(t record.Trial) (map[string]float64, error) {
	d := t.Delivery
	bits := d.ReceivedBits
	if d.Bulk != nil {
		bits += d.Bulk.Bits
	}
	v := map[string]float64{"throughput": float64(bits) / mega, "loss": percent * float64(d.Lost) / float64(max(1, d.Sent))}
	if t.HasJitter() {
		v["jitter"] = float64(d.Jitter) / perMilli
	}
	if t.OneWay == nil {
		return v, nil
	}
	return v, distribution(v, t.OneWay.Latency, 0)
}

// keptFull returns an error if a load above the rate did not fill the queue, of Mb/s that arrived.
func keptFull(c experiment.Cell, arrived float64) error {
	rate := float64(c.Rate)
	if float64(queueLoad(c)) < rate || arrived*mega >= bulkShare*rate {
		return nil
	}
	return fmt.Errorf("%.1f of the queue's %.0f Mb/s arrived, so it was not full; the machine may be too busy", arrived, rate/mega)
}

func queueTime(c experiment.Cell, trial time.Duration) time.Duration {
	return overhead + lasts(c, trial) + pollsExtra/2
}

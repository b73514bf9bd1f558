// SPDX-License-Identifier: Apache-2.0

package underlay

import (
	"context"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/units"
)

const (
	// bucket is how far a line may run ahead of its rate. The kernel's timer
	// is finer, but it fires late on a busy machine.
	bucket = time.Millisecond
	// largestGSO is the smallest bucket in bytes: the largest packet that
	// reaches a qdisc before segmentation, plus a header per segment.
	largestGSO = 80 * 1024
	// queue is the longest wait of a packet on a saturated line: about a TCP
	// round trip over a wide-area link.
	queue = 20 * time.Millisecond
	// fastest is the assumed rate of a line without a rate, in bit/s. It sets
	// the room for delayed packets in flight.
	fastest = 40e9
	// smallest is the shortest frame in bytes.
	smallest = 64
	// leastQueue is sufficient for a burst on a slow line, in packets.
	leastQueue = 16
)

const ethernet = 14 // bytes of header that qdiscs count

// shaper is the qdisc of an end of a line with that rate in bit/s, 0 for no limit:
// nil for none. With a delay, one qdisc delays packets and limits the rate.
func (s Spec) shaper(limit units.Bitrate, delay time.Duration) *host.Qdisc {
	switch {
	case delay > 0:
		return s.delay(limit, delay)
	case limit > 0:
		rate := uint64(limit)
		burst := max(rate/8*uint64(bucket)/uint64(time.Second), largestGSO, uint64(s.Underlay.MTU)+ethernet)
		return &host.Qdisc{Kind: "tbf", Rate: rate, Burst: burst, Latency: queue}
	}
	return nil
}

func (s Spec) delay(limit units.Bitrate, delay time.Duration) *host.Qdisc {
	rate := float64(limit)
	if limit == 0 {
		rate = fastest
	}
	// The limit is in packets. It must hold the shortest ones in flight, which
	// must not be lost, and the longest ones for the time queue.
	underWay := rate / 8 / smallest * delay.Seconds()
	waiting := rate / 8 / float64(s.Underlay.MTU+ethernet) * queue.Seconds()
	return &host.Qdisc{Kind: "netem", Rate: uint64(limit), Latency: delay, Limit: max(leastQueue, int(underWay+waiting))}
}

// shape appends the step that attaches a qdisc to the end of a line at which its
// packets enter, and reports the kernel's result; a line without a qdisc needs no
// step.
func (b *Build) shape(line string, i host.Iface, q *host.Qdisc) {
	if q == nil {
		return
	}
	b.add("shape "+line, host.LinkResource(i.Netns, i.Name, i.MAC), func(context.Context) error {
		if err := i.Netns.SetQdisc(i.Name, *q); err != nil {
			return err
		}
		state, err := i.Netns.ReadQdisc(i.Name)
		if err != nil {
			return err
		}
		b.Report.Qdiscs = append(b.Report.Qdiscs, transport.QdiscState{End: line, Kind: state.Kind, Text: state.Text})
		return nil
	})
}

// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/capture"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// point is a port of the path, where packets leave a function or arrive at one.
type point struct {
	end  plan.End
	link string
	sent bool   // packets leave the function here
	why  string // it cannot be observed; empty: it can
}

// points are the ports of a path in the order in which packets pass them.
func points(p *plan.Plan, path *plan.Path, back bool) []point {
	var all []point
	for _, s := range path.Steps {
		out, in := p.End(s.Link, s.Out), p.End(s.Link, s.In)
		all = append(all, point{end: out, link: s.Link, sent: true, why: unobservable(out)}, point{end: in, link: s.Link, why: unobservable(in)})
	}
	if !back {
		return all
	}
	var turned []point
	for i := len(all) - 1; i >= 0; i-- {
		q := all[i]
		q.sent = !q.sent
		turned = append(turned, q)
	}
	return turned
}

// unobservable is why nothing can be seen at a port; empty: something can.
func unobservable(e plan.End) string {
	if e.Face == chain.FaceDPDK && !e.Brokered() {
		return fmt.Sprintf("%s is a device of the function's own DPDK", e)
	}
	return ""
}

// sighting is when a packet passed a point, in ns since 1970.
type sighting struct {
	tag
	at int64
}

// tap observes a point.
type tap struct {
	point     point
	source    capture.Source
	close     func() error
	sampling  sampling
	sightings []sighting
	failed    error
}

// open begins to observe a point. A port of libdray must be open.
func open(ctx context.Context, live *node.Live, p point, s sampling, payload int) (*tap, error) {
	t := &tap{point: p, sampling: s}
	if p.end.Brokered() {
		client, err := broker.Dial(live.BrokerDir())
		if err != nil {
			return nil, err
		}
		native, err := capture.OpenNative(ctx, client, p.link, p.end.Function, p.end.Port, snaplen)
		if err != nil {
			return nil, err
		}
		t.source, t.close = native, native.Close
		return t, nil
	}
	sandbox := live.State.Sandboxes[p.end.Function]
	if sandbox == nil {
		return nil, fmt.Errorf("function %s has no sandbox", p.end.Function)
	}
	device, err := capture.OpenNetdev(sandbox.Netns, p.end.Port, snaplen, s.filter(payload))
	if err != nil {
		return nil, err
	}
	t.source, t.close = device, device.Close
	return t, nil
}

// lookEvery is how often a tap without packets looks again. More often would keep a CPU from
// the functions; the stamps are made when packets pass, not now.
const lookEvery = 5 * time.Millisecond

// run observes until ctx ends.
func (t *tap) run(ctx context.Context) {
	for {
		last := ctx.Err() != nil // packets from before the end are read after it
		if t.failed = t.source.Read(t.take); t.failed != nil || last {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

func (t *tap) take(p capture.Packet) error {
	if p.Sent != t.point.sent {
		return nil
	}
	if g, ok := find(p.Data); ok && t.sampling.takes(g.stream, g.number) {
		if len(t.sightings) == sightingsAtMost {
			return errTooMany
		}
		t.sightings = append(t.sightings, sighting{g, p.Time})
	}
	return nil
}

// failure is why the tap cannot tell what has passed; nil: it can. The end of a port is none:
// the generator's own end closes with it.
func (t *tap) failure() error {
	switch {
	case t.failed != nil && !errors.Is(t.failed, capture.ErrEnded):
		return fmt.Errorf("observe %s: %w", t.point.end, t.failed)
	case t.source.Counts().Malformed > 0:
		return fmt.Errorf("%s writes malformed records of what it copies", t.point.end.Function)
	}
	return nil
}

// view is what a tap has seen.
type view struct {
	sightings []sighting
	missed    uint64 // packets that passed too fast to be copied
}

func (t *tap) view() *view { return &view{t.sightings, t.source.Counts().Dropped} }

// sightingsAtMost bounds the memory of a tap: 32 MB.
const sightingsAtMost = 1 << 20

var errTooMany = errors.New("too many packets")

// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

const (
	// passPatience is how long the functions of a path may take to pass packets on: on a busy
	// machine they take many seconds to start.
	passPatience = 30 * time.Second
	// passProbe is how long each attempt sends, at lowProbeRate.
	passProbe = 100 * time.Millisecond
)

// Paths measures every path of the plan between its two ends, as Links measures links.
// The functions between the ends must run. It says in which direction nothing arrives.
func Paths(ctx context.Context, in Input, say func(text string)) (err error) {
	in.Plan = in.Plan.OfPaths()
	if in.next, err = in.passing(ctx, say); err != nil {
		return err
	}
	_, err = Links(ctx, in)
	return err
}

// pathKinds are the measurements in each direction of a path that its requirements take.
// The rate is offered, with a margin, and no more: functions that are sent more than they
// can pass on may pass on less than they could.
func pathKinds(l plan.Link, o Options) []measurement {
	var ms []measurement
	if needsLatency(l.Requires) || l.Requires.LossRatio != nil {
		ms = streams(l, o)
	}
	if l.Requires.MinBitrate > 0 {
		rate := datagrams(l, o)
		rate.params.Bitrate = uint64(rateMargin * float64(l.Requires.MinBitrate))
		ms = append(ms, rate)
	}
	// As on a link, this tells a path that passes nothing from instruments that fail.
	mtu := measurement{tool: instrument.Draygen{Quantity: record.QPathMTU}, quantity: record.QPathMTU, word: "MTU", params: mtuParams(l, o), overhead: 200 * time.Millisecond}
	return append(ms, once(mtu))
}

// roomToPoll reports whether a receiver may keep a CPU busy without taking it from the
// functions of a path. How many CPUs these have elsewhere is not known.
func roomToPoll(l plan.Link, o Options) bool {
	return l.Course == nil || !o.Far && goruntime.NumCPU() >= 2+len(l.Course.Through)
}

// mostUsers are the users to which the generator sends on its own: its flows.
const mostUsers = 256

// tunnelled puts packets into the path's tunnels at the end that has them. From the other
// end they go to the tunnels' users. Both are equally long, but for the tunnel's headers.
func tunnelled(m measurement, p *instrument.Params) {
	if m.link.Course == nil || m.link.Course.GTPU == nil {
		return
	}
	g := m.link.Course.GTPU
	first := m.from.String() == m.link.Ends[0].String()
	if first != (g.At == chain.SideFrom) {
		p.Encap = &instrument.Encapsulation{Users: min(g.Tunnels, mostUsers), Spread: "to"}
		return
	}
	p.Encap = &instrument.Encapsulation{Option: g.String(), Headers: g.Headers(), Users: 1, Spread: "from"}
	if p.Frame > 0 {
		p.Frame += g.Headers()
	}
	if p.MTU > 0 {
		p.MTU += g.Headers()
	}
}

// way is a direction of a path.
type way struct{ path, from string }

// nextHop is the MAC address to which the packets of a measurement go first; empty: they
// need none.
func (in Input) nextHop(m measurement) string {
	if m.link.Course == nil {
		return ""
	}
	return in.next[way{m.link.Name, m.from.String()}]
}

// passing finds for each direction of each path the MAC address with which packets pass,
// and waits until they do.
func (in Input) passing(ctx context.Context, say func(string)) (next map[way]string, err error) {
	next = map[way]string{}
	for _, m := range matrix(in.Plan, in.Options) {
		w := way{m.link.Name, m.from.String()}
		if next[w] != "" {
			continue
		}
		candidates := nextHops(m)
		hop, why := in.firstPassing(ctx, m, candidates)
		if ctx.Err() != nil {
			return next, ctx.Err()
		}
		if hop == "" {
			hop = candidates[0]
			say(fmt.Sprintf("path %s: nothing from %s arrives at %s: %s", m.link.Name, m.from, m.to, why))
		}
		next[w] = hop
	}
	return next, nil
}

// nextHops are the MAC addresses to which a host at the first end would send: of the
// receiver if it is in the same subnet, else of the next router. Functions that pass frames
// on without looking at addresses may be between ends of different subnets, so the other one
// comes second.
func nextHops(m measurement) []string {
	router := m.link.Course.Next[0]
	if m.from.String() != m.link.Ends[0].String() {
		router = m.link.Course.Next[1]
	}
	hops := []string{string(router.MAC), string(m.to.MAC)}
	if m.from.IP.IsValid() && m.from.IP.Contains(m.to.IP.Addr()) {
		slices.Reverse(hops)
	}
	return slices.Compact(hops)
}

// firstPassing is the first address with which packets arrive; "" if they do with none.
func (in Input) firstPassing(ctx context.Context, m measurement, candidates []string) (hop, why string) {
	for deadline := time.Now().Add(passPatience); ; {
		for _, hop := range candidates {
			received, err := in.probe(ctx, m, hop)
			if received {
				return hop, ""
			}
			if why = "its functions pass no packet on"; err != nil {
				why = err.Error()
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return "", why
		}
	}
}

// Way is a direction of a path, ready to send over.
type Way struct {
	From, To instrument.Endpoint
	NextHop  string                    // see instrument.Params
	Encap    *instrument.Encapsulation // likewise
}

// Way finds how packets pass a path of the plan, from its first end or back. It is an error if
// none does.
func (in Input) Way(ctx context.Context, path string, back bool) (Way, error) {
	l := in.Plan.OfPaths().Link(path)
	m := measurement{link: *l, from: l.Ends[0], to: l.Ends[1]}
	if back {
		m.from, m.to = m.to, m.from
	}
	hop, why := in.firstPassing(ctx, m, nextHops(m))
	if ctx.Err() != nil {
		return Way{}, ctx.Err()
	}
	if hop == "" {
		return Way{}, fmt.Errorf("path %s: nothing from %s arrives at %s: %s", path, m.from, m.to, why)
	}
	from, err1 := in.Endpoint(m.from)
	to, err2 := in.Endpoint(m.to)
	var p instrument.Params
	tunnelled(m, &p)
	return Way{from, to, hop, p.Encap}, errors.Join(err1, err2)
}

// probe reports whether a short stream arrives.
func (in Input) probe(ctx context.Context, m measurement, hop string) (received bool, err error) {
	from, err := in.Endpoint(m.from)
	if err != nil {
		return false, err
	}
	to, err := in.Endpoint(m.to)
	if err != nil {
		return false, err
	}
	params := instrument.Params{MessageRate: lowProbeRate, Duration: passProbe, NextHop: hop}
	tunnelled(m, &params)
	t, err := instrument.Draygen{Quantity: record.QProbe}.Run(ctx, from, to, params)
	return err == nil && t.Delivery != nil && t.Delivery.Received > 0, err
}

// SPDX-License-Identifier: Apache-2.0

// Package live watches the links of running chains: it samples the functions'
// reports, and keeps a verdict on each link's latest intervals.
package live

import (
	"context"
	"slices"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
)

// Chain is one chain's answer: how its links were planned, and the broker's
// report on links with native ports; nil Links mean no answer.
type Chain struct {
	telemetry.Snapshot
	Planned []plan.Link
}

// Source queries every watched chain.
type Source func(context.Context) ([]Chain, error)

// Link is the current state of one live link.
type Link struct {
	Chain  string            `json:"chain"`
	Status broker.LinkStatus `json:"status"`
	// Now is the last interval, Window all kept intervals together, and Total
	// everything since the ports were opened; one flow for each direction.
	Now    []telemetry.Flow `json:"now"`
	Window []telemetry.Flow `json:"window"`
	Total  []telemetry.Flow `json:"total"`
	// Verdicts judge the window; empty until an interval has passed.
	Verdicts []verdict.Verdict `json:"verdicts"`
}

// Sample is all live links at one time.
type Sample struct {
	Time  time.Time `json:"time"`
	Links []Link    `json:"links"`
}

// Watcher samples live links, and keeps the latest intervals of each.
type Watcher struct {
	Source Source
	Keep   int // intervals; a verdict takes at least verdict.MinTrials

	last    map[string]telemetry.Snapshot // by chain
	history map[linkID][][]telemetry.Flow // latest last
}

type linkID struct{ chain, link string }

// Sample queries once, and returns each link's state and its traffic since the
// previous sample.
func (w *Watcher) Sample(ctx context.Context) ([]Link, error) {
	chains, err := w.Source(ctx)
	if err != nil {
		return nil, err
	}
	var links []Link
	last, history := map[string]telemetry.Snapshot{}, map[linkID][][]telemetry.Flow{}
	for _, c := range chains {
		before, ok := w.last[c.Chain]
		if c.Links == nil {
			keepChain(c.Chain, before, ok, last, w.history, history)
			continue
		}
		last[c.Chain] = c.CarryOver(before)
		recent := map[string][]telemetry.Flow{}
		if ok {
			recent = byLink(telemetry.Between(before, c.Snapshot))
		}
		total := byLink(telemetry.Total(c.Snapshot))
		for _, status := range c.Links {
			id := linkID{c.Chain, status.Name}
			kept := w.history[id]
			if moved(before, status) { // what was measured of another transport says nothing of this one
				kept, recent[status.Name] = nil, nil
			}
			if now := recent[status.Name]; len(now) > 0 {
				kept = append(kept[max(0, len(kept)+1-w.Keep):], now)
			}
			history[id] = kept
			links = append(links, link(c, status, recent[status.Name], kept, total[status.Name]))
		}
	}
	w.last, w.history = last, history
	return links, nil
}

// moved reports whether a link had another transport before.
func moved(before telemetry.Snapshot, now broker.LinkStatus) bool {
	return slices.ContainsFunc(before.Links, func(l broker.LinkStatus) bool { return l.Name == now.Name && l.Kind != now.Kind })
}

// keepChain keeps the state of a chain that has not answered: its traffic
// meanwhile belongs to the interval that ends with its next answer.
func keepChain(chain string, before telemetry.Snapshot, known bool, last map[string]telemetry.Snapshot, from, to map[linkID][][]telemetry.Flow) {
	if !known {
		return
	}
	last[chain] = before
	for id, kept := range from {
		if id.chain == chain {
			to[id] = kept
		}
	}
}

// Watch samples at once and then n times more, every interval, and passes each
// sample to show; n < 0: until ctx ends, which is no error.
func (w *Watcher) Watch(ctx context.Context, interval time.Duration, n int, show func([]Link) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := 0; ; i++ {
		links, err := w.Sample(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := show(links); err != nil || i == n {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func byLink(flows []telemetry.Flow) map[string][]telemetry.Flow {
	out := map[string][]telemetry.Flow{}
	for _, f := range flows {
		out[f.Link] = append(out[f.Link], f)
	}
	return out
}

func link(c Chain, status broker.LinkStatus, now []telemetry.Flow, kept [][]telemetry.Flow, total []telemetry.Flow) Link {
	l := Link{Chain: c.Chain, Status: status, Now: now, Window: window(kept), Total: total}
	for _, planned := range c.Planned {
		if planned.Name == status.Name && len(kept) > 0 {
			l.Verdicts = judge(planned, kept)
		}
	}
	return l
}

// window joins intervals, direction by direction.
func window(kept [][]telemetry.Flow) []telemetry.Flow {
	var out []telemetry.Flow
	for _, interval := range kept {
		for _, f := range interval {
			out = add(out, f)
		}
	}
	return out
}

func add(sums []telemetry.Flow, f telemetry.Flow) []telemetry.Flow {
	for i := range sums {
		if sums[i].From == f.From && sums[i].To == f.To {
			sums[i].Add(f)
			return sums
		}
	}
	return append(sums, f)
}

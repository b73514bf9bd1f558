// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what this host can do: it tries every transport,
// runtime, qdisc and instrument, and recalls earlier runs and measurements here.
package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Prober reports whether this host can run it.
type Prober interface {
	Probe(ctx context.Context) inventory.Item
}

// Inspect describes the host and tries everything, in the given order. It changes
// nothing and leaves nothing behind. Every usable item is ok here; see Recall for
// those that never ran.
func Inspect(ctx context.Context, drivers []transport.Driver, runtimes []runtime.Runtime, instruments []Prober) (*inventory.Inventory, error) {
	inv, err := inspect(ctx, nil, drivers, runtimes)
	if err != nil {
		return nil, err
	}
	return inv, TryInstruments(ctx, inv, instruments)
}

// InspectFor is Inspect for a chain: it tries no instrument, and no runtime or transport
// that the chain cannot use, so that it does not wait for one that hangs.
func InspectFor(ctx context.Context, c *chain.Chain, drivers []transport.Driver, runtimes []runtime.Runtime) (*inventory.Inventory, error) {
	return inspect(ctx, c, drivers, runtimes)
}

// usesRuntime reports whether a chain has functions of a runtime; nil is any chain.
func usesRuntime(c *chain.Chain, r runtime.Runtime) bool {
	return c == nil || slices.ContainsFunc(c.Functions, func(f chain.Function) bool { return f.Runtime == r.Name() })
}

// mayUse reports whether a link of a chain may get a transport; nil is any chain.
func mayUse(c *chain.Chain, d transport.Driver) bool {
	return c == nil || slices.ContainsFunc(c.Links, func(l chain.Link) bool {
		return l.Transport == d.Name() || l.Transport == chain.TransportAuto && d.Caps().Rank >= 0
	})
}

func inspect(ctx context.Context, c *chain.Chain, drivers []transport.Driver, runtimes []runtime.Runtime) (*inventory.Inventory, error) {
	h, err := host.Describe()
	if err != nil {
		return nil, fmt.Errorf("describe this host: %w", err)
	}
	interfaces, err := host.Uplinks()
	if err != nil {
		return nil, err
	}
	inv := &inventory.Inventory{
		Host:        h,
		Transports:  make([]inventory.Transport, len(drivers)),
		Runtimes:    make([]inventory.Item, len(runtimes)),
		Qdiscs:      make([]inventory.Item, len(host.QdiscKinds())),
		DPDK:        dpdkItems(),
		Protections: protections(host.RefusesRights(), host.ProbePacketOptions()),
		Protocols:   []inventory.Item{sctp(host.ProbeSCTP())},
		Interfaces:  interfaces,
	}
	var p probes
	for i, d := range drivers {
		t := &inv.Transports[i]
		t.Caps = d.Caps()
		if mayUse(c, d) {
			p.try(ctx, &t.Item, d)
		} else {
			t.Item = inventory.NotNeeded(d.Name())
		}
	}
	for i, r := range runtimes {
		if usesRuntime(c, r) {
			p.try(ctx, &inv.Runtimes[i], r)
		} else {
			inv.Runtimes[i] = inventory.NotNeeded(string(r.Name()))
		}
	}
	for i, kind := range host.QdiscKinds() {
		p.try(ctx, &inv.Qdiscs[i], qdisc(kind))
	}
	p.Wait()
	// An interrupted probe says nothing about the host.
	return inv, ctx.Err()
}

// TryInstruments adds the instruments of this host to its inventory.
func TryInstruments(ctx context.Context, inv *inventory.Inventory, instruments []Prober) error {
	inv.Instruments = make([]inventory.Item, len(instruments))
	var p probes
	for i, instrument := range instruments {
		p.try(ctx, &inv.Instruments[i], instrument)
	}
	p.Wait()
	return ctx.Err()
}

// probes run at the same time.
type probes struct{ sync.WaitGroup }

func (p *probes) try(ctx context.Context, item *inventory.Item, of Prober) {
	p.Add(1)
	go func() {
		defer p.Done()
		started := time.Now()
		*item = of.Probe(ctx)
		slog.DebugContext(ctx, "probe", "name", item.Name, "status", item.Status, "reason", item.Reason, "took", time.Since(started))
	}()
}

// qdisc tries a kind of qdisc.
type qdisc string

func (kind qdisc) Probe(context.Context) inventory.Item {
	return host.ProbeItem(string(kind), host.ProbeQdisc(string(kind)))
}

// dpdkItems are what functions with dpdk ports need.
func dpdkItems() []inventory.Item {
	hierarchy, err := host.HugePageLimits()
	limits := host.ProbeItem("hugepage limits", err)
	limits.Version = hierarchy
	return []inventory.Item{
		dpdk.Probe("dpdk", "mempool_ring"), // every application needs it
		dpdk.ProbeDriver(),
		limits,
	}
}

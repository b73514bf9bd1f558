// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what this host can do: it tries every transport,
// runtime, qdisc and instrument, and recalls earlier runs and measurements here.
package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
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
		Instruments: make([]inventory.Item, len(instruments)),
		DPDK:        dpdkItems(),
		Protections: protections(host.RefusesRights(), host.ProbePacketOptions()),
		Protocols:   []inventory.Item{sctp(host.ProbeSCTP())},
		Interfaces:  interfaces,
	}
	var probes sync.WaitGroup
	probe := func(item *inventory.Item, f func() inventory.Item) {
		probes.Add(1)
		go func() {
			defer probes.Done()
			started := time.Now()
			*item = f()
			slog.DebugContext(ctx, "probe", "name", item.Name, "status", item.Status, "reason", item.Reason, "took", time.Since(started))
		}()
	}
	for i, d := range drivers {
		inv.Transports[i].Caps = d.Caps()
		probe(&inv.Transports[i].Item, func() inventory.Item { return d.Probe(ctx) })
	}
	for i, r := range runtimes {
		probe(&inv.Runtimes[i], func() inventory.Item { return r.Probe(ctx) })
	}
	for i, kind := range host.QdiscKinds() {
		probe(&inv.Qdiscs[i], func() inventory.Item { return host.ProbeItem(kind, host.ProbeQdisc(kind)) })
	}
	for i, p := range instruments {
		probe(&inv.Instruments[i], func() inventory.Item { return p.Probe(ctx) })
	}
	probes.Wait()
	// An interrupted probe says nothing about the host.
	return inv, ctx.Err()
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

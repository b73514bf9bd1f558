// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/bench"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// echoFrame is the shortest Ethernet frame, without FCS, in bytes.
const echoFrame = 60

// echoText are two functions with ports of the cell's face, each with a CPU. If
// that leaves none for a polling switch, the ends share one CPU in turns: only one
// of them is busy at a time.
func echoText(inv *inventory.Inventory, c experiment.Cell) string {
	return echoPair(inv, c, qos(c, c.Queue))
}

// echoPair is the same with that discipline, a field of the link.
func echoPair(inv *inventory.Inventory, c experiment.Cell, discipline string) string {
	cpus := ""
	switch {
	case c.Face == chain.FaceNetdev || len(inv.Host.CPUs) < 2:
	case bench.TakeTurns(inv, c.Transport):
		cpus = fmt.Sprintf(", cpus: %q", fmt.Sprint(inv.Host.CPUs[0]))
	default:
		cpus = ", cpus: 1"
	}
	text := hostsText(c) + "functions:\n"
	for i, f := range []string{client, server} {
		own := c
		own.Runtime = runtimeOf(c, f)
		text += fmt.Sprintf("  - {name: %s,%s runtime: %s%s%s, ports: [{name: p%d, ip: 10.99.0.%d/24, face: %s}]}\n", f, hostText(c, i), own.Runtime, imageField(own), cpus, i, i+1, c.Face)
	}
	return text + fmt.Sprintf("links:\n  - {name: link, ends: [%s.%s, %s.%s], transport: %s%s%s}\n", client, clientPort, server, sink, c.Transport, forwardingText(c), discipline)
}

// echo measures round trips, one packet at a time.
func echo(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	from, to, err := ends(live)
	if err != nil {
		return record.Trial{}, err
	}
	t, err := instrument.Draygen{Quantity: record.QFrames}.Echo(ctx, from, to, instrument.Params{Duration: r.Run.Trial, Frame: echoFrame, Busy: polls(c)})
	t.Link = live.State.Plan.Links[0].Name
	if live.State.Plan.Links[0].Tunnel() {
		t.Mark(record.MarkSimulatedHosts)
	}
	t.Runtimes = map[string]string{from.Name: string(c.Runtime), to.Name: string(runtimeOf(c, server))}
	if err != nil {
		return t, err
	}
	v := map[string]float64{}
	t.Experiment = &record.Experiment{Values: v}
	if err := distribution(v, t.Latency.Histogram, t.Latency.Lost); err != nil {
		return t, err
	}
	v["round_trip"] = v["latency_mean"] * perMicro / perMilli
	return t, nil
}

// polls reports whether the ends poll: the agent of a machine wakes a native port there,
// which takes far longer than a round trip.
func polls(c experiment.Cell) bool {
	return c.Face == chain.FaceNative && slices.Contains([]chain.RuntimeName{c.Runtime, c.FarRuntime}, chain.RuntimeVM)
}

// runtimeOf is the runtime of a function of an echo's chain.
func runtimeOf(c experiment.Cell, function string) chain.RuntimeName {
	if function == server && c.FarRuntime != "" {
		return c.FarRuntime
	}
	return c.Runtime
}

func echoTime(c experiment.Cell, trial time.Duration) time.Duration {
	d := overhead + trial + pollsExtra
	for _, f := range []string{client, server} {
		if runtimeOf(c, f) == chain.RuntimeVM {
			d += vmExtra
		}
	}
	return d
}

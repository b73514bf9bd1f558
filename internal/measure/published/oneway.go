// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

func oneWayText(_ *inventory.Inventory, c experiment.Cell) string { return pairText(c) }

// oneWay runs iperf in both directions at once, and takes the one-way latency from the
// stamps of both: their clocks may differ.
func oneWay(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	from, to, err := ends(live)
	if err != nil {
		return record.Trial{}, err
	}
	p := instrument.Params{Duration: r.Run.Trial, Bitrate: uint64(c.Offered().Bitrate), Message: c.Message}
	var back record.Trial
	var backward time.Duration
	var failed error
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		back, backward, failed = instrument.Iperf{}.Stamped(ctx, to, from, p)
	}()
	t, forward, err := instrument.Iperf{}.Stamped(ctx, from, to, p)
	wg.Wait()
	t.Raw += back.Raw
	t.Marks = distinct(slices.Concat(t.Marks, back.Marks))
	t.Link = live.State.Plan.Links[0].Name
	t.Runtimes = map[string]string{from.Name: string(c.Runtime), to.Name: string(c.Runtime)}
	if live.State.Plan.Links[0].Tunnel() {
		t.Mark(record.MarkSimulatedHosts)
	}
	if err := errors.Join(err, failed); err != nil {
		return t, err
	}
	latency, difference := twoWay(forward, backward)
	if latency <= 0 {
		return t, fmt.Errorf("stamps of %v one way and %v the other way give no latency", forward, backward)
	}
	t.Experiment = &record.Experiment{Values: map[string]float64{
		"latency_mean": float64(latency) / perMicro, "clock_difference": math.Abs(float64(difference)) / perMicro,
	}}
	return t, nil
}

// twoWay is the latency of a link whose directions take equally long, and the
// difference of its ends' clocks, from the differences of stamps in both directions:
// Δ = (τ12−τ21)/2, τ = τ12 − Δ.
func twoWay(forward, backward time.Duration) (latency, difference time.Duration) {
	difference = (forward - backward) / 2
	return forward - difference, difference
}

// oneWayTime is roughly how long that takes.
func oneWayTime(c experiment.Cell, trial time.Duration) time.Duration {
	d := overhead + trial
	if c.Runtime == chain.RuntimeVM {
		d += vmExtra
	}
	if strings.HasPrefix(c.Transport, "ovs") {
		d += pollsExtra
	}
	return d
}

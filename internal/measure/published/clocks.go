// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

const (
	// clockIntervals is a trial's number of intervals: the fewest that show drift.
	clockIntervals = 3
	// clockRate is the packets per second in each direction.
	clockRate = 5000
	// clockExtra is roughly the time to start and end both generators in each
	// interval.
	clockExtra = 400 * time.Millisecond
)

func clocksText(_ *inventory.Inventory, c experiment.Cell) string { return pairText(c) }

// clocks sends in both directions at once, and estimates the ends' clock offset
// from these packets' timestamps alone. The ends share one clock, so the true
// offset is 0 and the estimate is the method's error.
func clocks(ctx context.Context, r *Runner, live *node.Live, _ experiment.Cell) (record.Trial, error) {
	from, to, err := ends(live)
	if err != nil {
		return record.Trial{}, err
	}
	var intervals []stats.TwoWay
	var t record.Trial
	var marks []string
	began := time.Now()
	for range clockIntervals {
		there, back, err := bothWays(ctx, from, to, max(r.Run.Trial/clockIntervals, 100*time.Millisecond))
		if err != nil {
			return there, err
		}
		if there.OneWay == nil || back.OneWay == nil || there.OneWay.Min <= 0 || back.OneWay.Min <= 0 {
			return there, errors.New("the packets of one direction had no stamps")
		}
		intervals = append(intervals, stats.TwoWay{At: there.Start.Add(there.Duration / 2).Sub(began), Forward: time.Duration(there.OneWay.Min), Backward: time.Duration(back.OneWay.Min)})
		t, marks = there, slices.Concat(marks, there.Marks, back.Marks)
	}
	t.Start, t.Duration, t.Marks = began, time.Since(began), distinct(marks)
	t.Link = live.State.Plan.Links[0].Name
	c, err := stats.Clocks(intervals)
	if err != nil {
		return t, err
	}
	if !c.Agrees(0) {
		return t, fmt.Errorf("both ends read one clock, and the estimate %v ± %v excludes a difference of 0", c.Delta, c.Error)
	}
	v := map[string]float64{
		"clock_difference": math.Abs(float64(c.Delta)) / perMicro, "clock_bound": float64(c.Error) / perMicro,
	}
	t.Experiment = &record.Experiment{Values: v}
	t.Raw += fmt.Sprintf("intervals %+v: difference %v ± %v\n", intervals, c.Delta, c.Error)
	return t, distribution(v, t.OneWay.Latency, t.Delivery.Lost)
}

// distinct are the marks in order, without duplicates; none: an empty list.
func distinct(marks []string) []string {
	slices.Sort(marks)
	return append([]string{}, slices.Compact(marks)...)
}

// bothWays sends from each end to the other at the same time.
func bothWays(ctx context.Context, from, to instrument.Endpoint, length time.Duration) (there, back record.Trial, err error) {
	generator, p := instrument.Draygen{Quantity: record.QProbe}, instrument.Params{Duration: length, MessageRate: clockRate}
	var failed error
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		back, failed = generator.Run(ctx, to, from, p)
	}()
	there, err = generator.Run(ctx, from, to, p)
	wg.Wait()
	return there, back, errors.Join(err, failed)
}

// ends are the two ends of a chain's only link.
func ends(live *node.Live) (from, to instrument.Endpoint, err error) {
	in := verify.Input{Plan: live.State.Plan, Sandboxes: live.State.Sandboxes, Device: live.Device}
	list := live.State.Plan.Links[0].Ends
	if from, err = in.Endpoint(list[0]); err != nil {
		return from, to, err
	}
	to, err = in.Endpoint(list[1])
	return from, to, err
}

// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
)

func (r *Runner) measure(ctx context.Context, c experiment.Cell) (record.Trial, error) {
	if c.Tool == experiment.ToolCyclictest && c.Runtime == "" {
		return instrument.WakeUp(ctx, instrument.Endpoint{}, c.Stress, r.Run.Trial) // on the host itself
	}
	p, own := probes[c.Tool]
	if own && p.text == nil {
		return p.run(ctx, r, nil, c)
	}
	began := time.Now()
	live, err := r.create(ctx, c)
	if err != nil {
		return record.Trial{}, err
	}
	var t record.Trial
	if own {
		t, err = p.run(ctx, r, live, c)
	} else {
		t, err = r.start(ctx, live, c, began)
	}
	return r.onChain(t, live), errors.Join(err, remove(ctx, live))
}

// downTime bounds the removal of a cell, even after an interrupt.
const downTime = 2 * time.Minute

func (r *Runner) create(ctx context.Context, c experiment.Cell) (*node.Live, error) {
	parsed, text, p, err := prepare(r.Inventory, c)
	if err != nil {
		return nil, err
	}
	return r.Create(ctx, parsed, text, p)
}

// lasts is the length of a cell's trial.
func lasts(c experiment.Cell, trial time.Duration) time.Duration {
	return time.Duration(max(1, c.Times)) * trial
}

// pingRate is how many requests of 64 bytes make 1 Mb/s.
const pingRate = 1_000_000 / 8 / 64

// link measures the only link of a chain that is up.
func (r *Runner) link(ctx context.Context, live *node.Live, c experiment.Cell) (record.Trial, error) {
	from, to, err := ends(live)
	if err != nil {
		return record.Trial{}, err
	}
	p := instrument.Params{Duration: lasts(c, r.Run.Trial), Message: c.Message, Buffer: c.Buffer}
	var tool instrument.Instrument
	switch c.Tool {
	case experiment.ToolTCP:
		tool = instrument.Iperf3{}
	case experiment.ToolRequests:
		tool = instrument.Qperf{}
	case experiment.ToolPingPong:
		tool, p.MessageRate = instrument.Sockperf{}, pingRate
	case experiment.ToolUDP:
		tool, p.Bitrate = instrument.Iperf{}, uint64(c.Offered().Bitrate)
	default:
		return record.Trial{}, fmt.Errorf("no instrument for %s", c.Tool)
	}
	run := tool.Run
	if c.Bulk {
		run = besideBulk(tool, uint64(c.Rate), slower(r.Run, bulkExtra))
	}
	t, err := run(ctx, from, to, p)
	t.Link = live.State.Plan.Links[0].Name
	if live.State.Plan.Links[0].Tunnel() {
		t.Mark(record.MarkSimulatedHosts)
	}
	t.Runtimes = map[string]string{from.Name: string(c.Runtime), to.Name: string(c.Runtime)}
	return t, err
}

// startTime bounds how long a function may take until its command runs.
const startTime = 2 * time.Minute

// start waits until the function's command has written, then reads its control
// group's memory and its disk needs.
func (r *Runner) start(ctx context.Context, live *node.Live, c experiment.Cell, began time.Time) (record.Trial, error) {
	t := record.Trial{Quantity: record.QStart, Start: began, Marks: []string{}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	if err := awaitStarts(ctx, live, 1); err != nil {
		return t, err
	}
	t.Duration = time.Since(began)
	meter, err := host.NewMeter(live.Cgroup())
	if err != nil {
		return t, err
	}
	usage, err := meter.Read()
	if err != nil {
		return t, err
	}
	disk, err := r.diskOf(ctx, live, c)
	if err != nil {
		return t, err
	}
	t.Raw = fmt.Sprintf("memory %d, disk %d\n", usage.Memory, disk)
	t.Bench = &record.Bench{Cost: &record.Cost{Memory: usage.Memory}}
	t.Experiment = &record.Experiment{Values: map[string]float64{
		"start_time": t.Duration.Seconds(), "memory": float64(usage.Memory) / mega, "disk": float64(disk) / mega,
	}}
	why, err := memoryElsewhere(ctx, live, client, c)
	if why != "" {
		delete(t.Experiment.Values, "memory")
		t.Experiment.Why = map[string]string{"memory": why}
	}
	return t, err
}

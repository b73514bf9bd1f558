// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// spinText is a machine with two CPUs: the first always keeps its tick.
func spinText(_ *inventory.Inventory, c experiment.Cell) string {
	return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s, cpus: 2, vm: {nohz_full: %v}, command: [sleep, infinity]}\n", client, c.Runtime, c.NoHzFull)
}

// spin measures the interruptions of a thread spinning on the machine's last CPU.
func spin(ctx context.Context, r *Runner, live *node.Live, _ experiment.Cell) (record.Trial, error) {
	at := live.State.Sandboxes[client]
	info, err := guest.ReadInfo(at.Guest)
	if err != nil {
		return record.Trial{}, err
	}
	if info.CPUs < 2 {
		return record.Trial{}, errors.New("the machine has no CPU without the tick: give it two or more")
	}
	t, s, err := instrument.Spin(ctx, instrument.Endpoint{Name: client, Place: at.Place(), Guest: at.Guest}, info.CPUs-1, r.Run.Trial)
	if err != nil {
		return t, err
	}
	t.Experiment = &record.Experiment{Values: map[string]float64{"stall_max": float64(s.Longest) / perMicro, "ticks": s.Ticks}}
	return t, nil
}

// spinExtra is oslat's warm-up time.
const spinExtra = time.Second

// spinTime is roughly how long that takes, with its machine.
func spinTime(c experiment.Cell, trial time.Duration) time.Duration {
	return wakeUpTime(c, spinExtra+trial)
}

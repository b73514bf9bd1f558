// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

func recoveryText(_ *inventory.Inventory, c experiment.Cell) string {
	if c.Transport != "" {
		return outageText(c)
	}
	return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s%s, restart: always, command: [sh, -c, \"echo %s; exec sleep infinity\"]}\n", client, c.Runtime, imageField(c), ready)
}

// recoveryTime is roughly how long a function takes to start and be replaced.
const recoveryTime = 400 * time.Millisecond

// recovered kills the function's process, and waits until its command has
// restarted, or its link carries packets again.
func recovered(ctx context.Context, _ *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	if c.Transport != "" {
		return outage(ctx, live)
	}
	t := record.Trial{Quantity: record.QRecovery, Start: time.Now(), Marks: []string{}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	if err := awaitStarts(ctx, live, 1); err != nil {
		return t, err
	}
	victim, err := processOf(ctx, live, client)
	if err != nil {
		return t, err
	}
	killed := time.Now()
	if err := kill(victim); err != nil {
		return t, err
	}
	if err := awaitStarts(ctx, live, 2); err != nil {
		return t, err
	}
	t.Duration = time.Since(killed)
	t.Raw = fmt.Sprintf("process %d was killed; its command ran again after %v\n", victim.PID, t.Duration)
	t.Experiment = &record.Experiment{Values: map[string]float64{"back_after": float64(t.Duration) / perMilli}}
	return t, nil
}

// awaitStarts waits until the function has started so many times.
func awaitStarts(ctx context.Context, live *node.Live, times int) error {
	for began := time.Now(); strings.Count(live.LogTail(client, times+1), ready) < times; {
		if time.Since(began) > startTime {
			return fmt.Errorf("the function did not start within %v; its last output: %s", startTime, live.LogTail(client, 3))
		}
		if err := host.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// processOf is a function's first process, once its supervisor has published it.
func processOf(ctx context.Context, live *node.Live, function string) (host.ProcessID, error) {
	for began := time.Now(); time.Since(began) < startTime; {
		functions, _, err := live.Status()
		if err != nil {
			return host.ProcessID{}, err
		}
		for _, f := range functions {
			if f.Name == function && f.Phase == node.PhaseRunning && f.Process.PID > 0 {
				return f.Process, nil
			}
		}
		if err := host.Sleep(ctx, time.Millisecond); err != nil {
			return host.ProcessID{}, err
		}
	}
	return host.ProcessID{}, fmt.Errorf("function %s has no process", function)
}

func kill(p host.ProcessID) error {
	if !p.Kill() {
		return fmt.Errorf("process %d ended before it was killed", p.PID)
	}
	return nil
}

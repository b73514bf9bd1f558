// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/instrument"
	"github.com/drayage/dray/internal/record"
)

// wakeUp measures how late timers wake a thread of real-time priority, on the host
// itself or in a function.
func (r *Runner) wakeUp(ctx context.Context, c chain.Cell) (record.Trial, error) {
	if c.Runtime == "" {
		return instrument.WakeUp(ctx, instrument.Endpoint{}, c.Stress, r.Run.Trial)
	}
	live, err := r.create(ctx, c)
	if err != nil {
		return record.Trial{}, err
	}
	at := live.State.Sandboxes[client]
	t, err := instrument.WakeUp(ctx, instrument.Endpoint{Name: client, Place: at.Place(), Guest: at.Guest}, c.Stress, r.Run.Trial)
	t.Env, t.Chain = r.Env(live), chainName
	if emulated(live) {
		t.Marks = append(t.Marks, record.MarkEmulated)
	}
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTime)
	defer cancel()
	return t, errors.Join(err, live.Remove(down))
}

// ownKernel reports whether the kernel of a cell is that of its machine, and not
// the host's.
func ownKernel(c chain.Cell) bool {
	return c.Tool == chain.ToolCyclictest && c.Runtime == chain.RuntimeVM
}

// wakeUpText is the one function of such a cell.
func wakeUpText(c chain.Cell) string {
	machine := ""
	if c.Runtime == chain.RuntimeVM && c.Kernel != "" {
		machine = fmt.Sprintf(", vm: {kernel: %s}", c.Kernel)
	}
	return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s, command: [sleep, infinity]%s}\n", client, c.Runtime, machine)
}

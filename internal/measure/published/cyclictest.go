// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// wakeUp measures how late timers wake a real-time thread in a function.
func wakeUp(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (t record.Trial, err error) {
	at := live.State.Sandboxes[client]
	if at.Guest == "" {
		undo, failed := at.Tools.Realtime()
		if failed != nil {
			return t, failed
		}
		defer func() { err = errors.Join(err, undo()) }()
	}
	return instrument.WakeUp(ctx, instrument.Endpoint{Name: client, Place: at.Place(), Guest: at.Guest}, c.Stress, r.Run.Trial)
}

// wakeUpTime is roughly how long that takes, with its function.
func wakeUpTime(c experiment.Cell, trial time.Duration) time.Duration {
	if c.Runtime == chain.RuntimeVM {
		trial += vmExtra
	}
	return overhead + trial
}

// ownKernel reports whether a cell's kernel is its machine's, not the host's.
func ownKernel(c experiment.Cell) bool {
	return c.Tool == experiment.ToolCyclictest && c.Runtime == chain.RuntimeVM
}

// wakeUpText is the one function of such a cell.
func wakeUpText(_ *inventory.Inventory, c experiment.Cell) string {
	machine := ""
	if c.Runtime == chain.RuntimeVM && c.Kernel != "" {
		machine = fmt.Sprintf(", vm: {kernel: %s}", c.Kernel)
	}
	return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s%s, command: [sleep, infinity]%s}\n", client, c.Runtime, imageField(c), machine)
}

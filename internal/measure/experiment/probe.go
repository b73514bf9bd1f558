// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"time"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// probe is how the cells of a tool are measured that takes a chain of its own kind.
type probe struct {
	// text is the chain's functions and links; nil: nothing comes up.
	text func(inv *inventory.Inventory, c chain.Cell) string
	// run measures the chain, which is up, and whose commands do not run yet.
	run func(ctx context.Context, r *Runner, live *node.Live, c chain.Cell) (record.Trial, error)
	// takes is about how long all of that takes on an idle machine.
	takes func(c chain.Cell, trial time.Duration) time.Duration
}

func always(d time.Duration) func(chain.Cell, time.Duration) time.Duration {
	return func(chain.Cell, time.Duration) time.Duration { return d }
}

var probes = map[chain.Tool]probe{
	chain.ToolChecks:  {checksText, checked, checksTakes},
	chain.ToolDensity: {densityText, dense, func(c chain.Cell, _ time.Duration) time.Duration { return time.Duration(c.Functions) * denseTime }},
	chain.ToolPlanned: {nil, planned, always(0)},
	chain.ToolRecovery: {recoveryText, recovered, func(c chain.Cell, _ time.Duration) time.Duration {
		if c.Transport != "" {
			return outageTime
		}
		return recoveryTime
	}},
	chain.ToolCyclictest: {wakeUpText, wakeUp, wakeUpTime},
	chain.ToolSpin:       {spinText, spin, spinTime},
	chain.ToolEcho:       {echoText, echo, echoTime},
	chain.ToolImage:      {imageText, built, always(imageTime)},
	chain.ToolClocks:     {clocksText, clocks, func(_ chain.Cell, trial time.Duration) time.Duration { return trial + clockIntervals*clockExtra }},
}

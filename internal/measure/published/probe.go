// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"time"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// probe describes how to measure the cells of a tool with its own kind of chain.
type probe struct {
	// text is the chain's functions and links; nil: nothing comes up.
	text func(inv *inventory.Inventory, c experiment.Cell) string
	// run measures the chain, which is up with no commands running yet.
	run func(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error)
	// takes is roughly how long all of that takes on an idle machine.
	takes func(c experiment.Cell, trial time.Duration) time.Duration
}

func always(d time.Duration) func(experiment.Cell, time.Duration) time.Duration {
	return func(experiment.Cell, time.Duration) time.Duration { return d }
}

var probes = map[experiment.Tool]probe{
	experiment.ToolChecks:  {checksText, checked, always(2 * time.Second)},
	experiment.ToolDensity: {densityText, dense, func(c experiment.Cell, _ time.Duration) time.Duration { return time.Duration(c.Functions) * denseTime }},
	experiment.ToolPlanned: {nil, planned, always(0)},
	experiment.ToolRecovery: {recoveryText, recovered, func(c experiment.Cell, _ time.Duration) time.Duration {
		if c.Transport != "" {
			return outageTime
		}
		return recoveryTime
	}},
	experiment.ToolCyclictest: {wakeUpText, wakeUp, wakeUpTime},
	experiment.ToolSpin:       {spinText, spin, spinTime},
	experiment.ToolEcho:       {echoText, echo, echoTime},
	experiment.ToolImage:      {imageText, built, always(imageTime)},
	experiment.ToolOneWay:     {oneWayText, oneWay, oneWayTime},
	experiment.ToolSockets:    {socketsText, sockets, socketsTime},
	experiment.ToolPool:       {poolText, pool, poolTime},
	experiment.ToolRAN:        {ranText, ran, ranTime},
	experiment.ToolQueue:      {queueText, queue, queueTime},
	experiment.ToolFronthaul:  {fronthaulText, fronthaul, fronthaulTime},
	experiment.ToolClocks:     {clocksText, clocks, func(_ experiment.Cell, trial time.Duration) time.Duration { return trial + clockIntervals*clockExtra }},
}

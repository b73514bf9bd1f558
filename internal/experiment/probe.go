// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/record"
)

// probe is how the cells of a tool are measured that takes a chain of its own kind.
type probe struct {
	// text is the chain's functions and links.
	text func(inv *inventory.Inventory, c chain.Cell) string
	// run measures the chain, which is up, and whose commands do not run yet.
	run func(ctx context.Context, r *Runner, live *node.Live, c chain.Cell) (record.Trial, error)
	// takes is about how long that takes on an idle machine.
	takes func(c chain.Cell, trial time.Duration) time.Duration
}

var probes = map[chain.Tool]probe{
	chain.ToolChecks: {checksText, checked, func(chain.Cell, time.Duration) time.Duration { return checksTime }},
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/node"
)

// takeUp checks that an interrupted run may go on here, where it was begun by that
// version of dray, and removes what it left.
func takeUp(ctx context.Context, dir string, was inventory.Host, dray string, n *node.Node, inv *inventory.Inventory) error {
	if was.CPUModel != inv.Host.CPUModel || was.Hostname != inv.Host.Hostname || was.Kernel != inv.Host.Kernel || dray != version {
		return fmt.Errorf("%s was begun on %s (%s, Linux %s) by dray %s: figures of two machines or versions do not mix; begin anew with another --out",
			dir, was.Hostname, was.CPUModel, was.Kernel, dray)
	}
	_, err := n.Collect(ctx)
	return err
}

// interrupted says what can be done with a run that err ended.
func interrupted(err error, dir string) error {
	return fmt.Errorf("%w: nothing is left up; `dray report %[2]s` shows what there is, `dray bench --resume %[2]s` goes on", err, dir)
}

// progressLeft tells what is being measured, and for how long a run goes on.
func (a *app) progressLeft(text string, left time.Duration) {
	a.progress("  %s, %d s left", text, int(left.Round(time.Second).Seconds()))
}

// seedOr is the seed, or a new one where it is 0.
func seedOr(seed uint64) uint64 {
	if seed == 0 {
		return 1 + rand.Uint64N(1<<53-1) // exact in JSON readers that use doubles
	}
	return seed
}

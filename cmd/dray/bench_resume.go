// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/drayage/dray/internal/measure/rundir"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
)

// takeUp checks that an interrupted run may go on here, where it was begun on that
// host by that dray, and removes what it left.
func takeUp(ctx context.Context, dir string, was inventory.Host, by report.Program, n *node.Node, inv *inventory.Inventory) error {
	now, err := rundir.Program(version)
	if err != nil {
		return err
	}
	if err := rundir.SameConditions(dir, was, inv.Host, by, now); err != nil {
		return err
	}
	_, err = n.Collect(ctx)
	return err
}

// benchInterrupted says what can be done with a run that err ended.
func benchInterrupted(err error, dir string) error {
	return fmt.Errorf("%w: nothing is left up; `dray report %[2]s` shows what there is, `dray bench --resume %[2]s` goes on", err, dir)
}

// progressOf reports the state of a run.
func (a *app) progressOf(p runner.Progress) { a.progress("  %s", p) }

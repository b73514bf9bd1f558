// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/node"
)

func addNoWaitFlag(cmd *cobra.Command, noWait *bool) {
	cmd.Flags().BoolVar(noWait, "no-wait", false, "fail if another dray measures on this host, instead of waiting for it")
}

// awaitTurn waits until no other dray measures on this host: each would attribute
// the other's load to the link. The turn ends with end, or with this process.
func (a *app) awaitTurn(ctx context.Context, command string, noWait bool) (end func(), err error) {
	n, err := a.node()
	if err != nil {
		return nil, err
	}
	return n.Measure(ctx, command, func(m node.Measurer) error {
		if noWait {
			return &fixableError{Text: m.String() + ", is measuring on this host", Fix: "again later, or without --no-wait"}
		}
		a.progress("Waiting for %s, which is measuring on this host", m)
		return nil
	})
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/node"
)

func (a *app) verifyCommand() *cobra.Command {
	var opts measureOptions
	cmd := &cobra.Command{
		Use:   "verify CHAIN",
		Short: "Measure and judge every link of a running chain",
		Long: "Measure every link of a running chain, over its functions' own ports, and judge its requirements.\n" +
			"The functions' commands keep running, and their traffic shares the links; `dray run` measures\n" +
			"before any command starts. If an application has opened a native port of a link, no instrument\n" +
			"can: the link is judged by that application's own traffic, as its ports report it.",
		Example: "  dray up examples/f1-split.yaml\n  dray verify f1-split",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if _, err := a.open(argv[0]); err != nil {
				return err
			}
			end, err := a.awaitTurn(cmd.Context(), "verify", opts.noWait)
			if err != nil {
				return err
			}
			defer end()
			return a.verify(cmd.Context(), argv[0], opts)
		},
	}
	opts.addFlags(cmd)
	return cmd
}

func (a *app) verify(ctx context.Context, name string, opts measureOptions) (err error) {
	n, live, err := a.openWhole(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Release()) }()
	source, err := os.ReadFile(live.ChainFile())
	if err != nil {
		return err
	}
	j := chainrun.Job{Chain: live.Chain, Source: source, Plan: live.State.Plan, Node: n}
	if j.Inventory, err = a.inspectFor(ctx, j.Chain, n); err != nil {
		return err
	}
	r, err := a.newRun(ctx, j, opts)
	if err != nil {
		return err
	}
	if r.Functions, _, err = live.Status(); err != nil {
		return err
	}
	if err := r.Begin(live); err != nil {
		return err
	}
	if err = r.Links(ctx, live); err == nil {
		err = r.Paths(ctx, live)
	}
	return a.finish(ctx, r, live, err)
}

// openWhole opens and locks a running chain of which every sandbox is there.
func (a *app) openWhole(ctx context.Context, name string) (*node.Node, *node.Live, error) {
	n, err := a.node()
	if err != nil {
		return nil, nil, err
	}
	live, err := n.OpenLocked(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if err := allThere(ctx, live); err != nil {
		return nil, nil, errors.Join(err, live.Release())
	}
	return n, live, nil
}

// allThere is an error unless all functions' sandboxes are known to exist: a measurement
// would not be of a function's link.
func allThere(ctx context.Context, live *node.Live) error {
	var errs []error
	for name, err := range live.Check(ctx) {
		what := "cannot be asked"
		if errors.As(err, new(*runtime.GoneError)) {
			what = "is gone"
		}
		errs = append(errs, fmt.Errorf("function %s %s: %w", name, what, err))
	}
	return errors.Join(errs...)
}

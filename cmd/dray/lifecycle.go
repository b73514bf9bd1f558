// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/node"
)

func (a *app) upCommand() *cobra.Command {
	var warn bool
	cmd := &cobra.Command{
		Use:     "up FILE",
		Short:   "Bring a chain up and leave it running",
		Long:    "Plan the chain, create its sandboxes and links, start the functions' commands and supervise them until `dray down`.",
		Example: "  dray up examples/f1-split.yaml\n  dray status f1-split",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			job, err := a.read(cmd.Context(), argv[0], warn)
			if err != nil {
				return err
			}
			if err := a.planToRun(cmd.Context(), job); err != nil {
				return err
			}
			return a.up(cmd.Context(), job)
		},
	}
	addWarnFlag(cmd, &warn)
	return cmd
}

func (a *app) up(ctx context.Context, job *chainrun.Job) error {
	a.warnOfCalibration(job.Inventory)
	a.progress("Bringing up %s: %s", job.Chain.Name, job.Summary())
	started := time.Now()
	live, err := job.Node.Create(ctx, "up", job.Chain, job.Source, job.Plan)
	if err != nil {
		return a.pointToApply(job, err)
	}
	if err := a.startAndCommit(ctx, live); err != nil {
		return live.Fail(ctx, err)
	}
	a.endProgress()
	if a.json {
		return a.printJSON(schemaChain, map[string]any{"chain": job.Chain.Name, "state": "up", "seconds": time.Since(started).Seconds()})
	}
	fmt.Fprintf(a.out, "%s is up (%.2f s). `dray status %[1]s` shows it, `dray down %[1]s` removes it.\n", job.Chain.Name, time.Since(started).Seconds())
	return nil
}

func (a *app) startAndCommit(ctx context.Context, live *node.Live) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := live.StartSupervisor(ctx, program, node.Settle); err != nil {
		return live.WithLogs(err)
	}
	return live.Commit()
}

func (a *app) downCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "down CHAIN | --all",
		Short:   "Stop a chain and remove everything it created",
		Example: "  dray down f1-split\n  dray down --all",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			n, err := a.node()
			switch {
			case err != nil:
				return err
			case all == (len(argv) == 1):
				return usageError("name a chain, or give --all; `dray status` lists the chains")
			case all:
				return a.downAll(cmd.Context(), n)
			}
			return a.downOne(cmd.Context(), n, argv[0])
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every chain of this host")
	return cmd
}

// downAll takes every chain down that it can, until it is interrupted.
func (a *app) downAll(ctx context.Context, n *node.Node) error {
	list, err := n.List()
	errs, removed := []error{err}, []node.Removed{}
	for _, found := range list {
		if found.Condition == node.Foreign || ctx.Err() != nil {
			continue
		}
		kept, err := a.down(ctx, n, found.Chain)
		if errors.As(err, new(*node.AbsentError)) {
			continue // another command has removed it
		}
		if errs = append(errs, err); err == nil {
			removed = append(removed, node.Removed{Found: found, Removal: kept})
		}
	}
	if a.json {
		errs = append(errs, a.printJSON(schemaRemoved, map[string]any{"removed": removed}))
	}
	return errors.Join(append(errs, ctx.Err())...)
}

func (a *app) downOne(ctx context.Context, n *node.Node, name string) error {
	started := time.Now()
	kept, err := a.down(ctx, n, name)
	if err != nil || !a.json {
		return err
	}
	return a.printJSON(schemaChain, struct {
		Chain   string  `json:"chain"`
		State   string  `json:"state"`
		Seconds float64 `json:"seconds"`
		node.Removal
	}{name, "down", time.Since(started).Seconds(), kept})
}

// down takes a chain down, and prints that unless it is to be a document.
func (a *app) down(ctx context.Context, n *node.Node, name string) (node.Removal, error) {
	started := time.Now()
	kept, err := n.Down(ctx, name)
	switch {
	case err != nil:
		a.warnOfKept(name, kept)
	case !a.json:
		fmt.Fprintf(a.out, "%s is down (%.2f s)\n", name, time.Since(started).Seconds())
		a.printKept(kept)
	}
	return kept, err
}

func (a *app) gcCommand() *cobra.Command {
	var leftovers bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Clean up chains whose dray process was killed",
		Long: "Remove what half-built chains left behind: namespaces, links, bridges, qdiscs, cgroups,\n" +
			"mounts, containers, files and processes; broken chains, even if they run; and the logs of chains that did not come\n" +
			"up. Chains that are up, or that another dray is working on, stay.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := a.node()
			if err != nil {
				return err
			}
			collect := n.CollectBroken
			if leftovers {
				collect = n.Collect
			}
			removed, err := collect(cmd.Context())
			if a.json {
				return errors.Join(err, a.printJSON(schemaRemoved, map[string]any{"removed": removed}))
			}
			for _, found := range removed {
				if found.Condition == node.Broken {
					fmt.Fprintf(a.out, "removed %s, which was broken: %s\n", found.Chain, found.Detail)
				} else {
					fmt.Fprintf(a.out, "removed what %s left (%s)\n", found.Chain, found.Detail)
				}
				a.printKept(found.Removal)
			}
			if len(removed) == 0 && err == nil {
				fmt.Fprintln(a.out, "nothing to remove")
			}
			return errors.Join(err, a.warnOfForeign(n))
		},
	}
	cmd.Flags().BoolVar(&leftovers, "leftovers", false, "only what half-built chains left: broken chains and logs stay")
	return cmd
}

// printKept says what the removal of a chain has kept.
func (a *app) printKept(kept node.Removal) {
	for _, line := range keptLines(kept) {
		fmt.Fprintln(a.out, " ", line)
	}
}

// warnOfKept says it of a chain that was removed on the way.
func (a *app) warnOfKept(chain string, kept node.Removal) {
	for _, line := range keptLines(kept) {
		a.warn(fmt.Errorf("chain %s, which was removed: %s", chain, line))
	}
}

func keptLines(kept node.Removal) (lines []string) {
	for _, file := range kept.SetAside {
		lines = append(lines, "kept as "+file)
	}
	for _, what := range kept.Lost {
		lines = append(lines, "not kept: "+what)
	}
	for _, what := range kept.Left {
		lines = append(lines, "not removed: "+what)
	}
	return lines
}

// warnOfForeign names what is in the state directory and no chain.
func (a *app) warnOfForeign(n *node.Node) error {
	list, err := n.List()
	for _, found := range list {
		if found.Condition == node.Foreign {
			a.warn(errors.New(found.Detail))
		}
	}
	return err
}

func (a *app) superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "supervise CHAIN",
		Short:  "Start and restart the functions of a chain (run by `dray up`)",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			live, err := a.open(argv[0])
			if err != nil {
				return err
			}
			s, err := live.Supervise()
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			s.Outlive(program)
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, node.ReloadSignal)
			go func() {
				for range reload {
					s.Reload()
				}
			}()
			return s.Run(cmd.Context())
		},
	}
}

func (a *app) keepOutputCommand() *cobra.Command {
	return &cobra.Command{
		Use:    node.LogKeeperCommand + " CHAIN FUNCTION…",
		Short:  "Log the output of functions whose supervisor was killed (run by the supervisor)",
		Hidden: true,
		Args:   args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			n, err := a.node()
			if err != nil {
				return err
			}
			return n.KeepOutput(cmd.Context(), argv[0], argv[1:])
		},
	}
}

// absolute makes a path that survives a change of directory.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

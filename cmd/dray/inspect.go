// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// job is a chain file that was read and planned for this host.
type job struct {
	chain     *chain.Chain
	source    []byte
	inventory *inventory.Inventory
	plan      *plan.Plan
	node      *node.Node
}

// summary is one clause: how much there is to do.
func (j *job) summary() string {
	var transports []string
	for _, l := range j.plan.Links {
		transports = append(transports, l.Transport)
	}
	slices.Sort(transports)
	return fmt.Sprintf("%s, %s over %s", count(len(j.chain.Functions), "function"), count(len(j.chain.Links), "link"),
		strings.Join(slices.Compact(transports), ", "))
}

// count is "1 link", "2 links".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func addWarnFlag(cmd *cobra.Command, warn *bool) {
	cmd.Flags().BoolVar(warn, "warn", false, "go on where a requirement is not expected to be met (as policy.on_infeasible: warn)")
}

// prepare reads, checks and plans a chain file. An infeasible chain is an
// error with its exit code; the job is returned all the same.
func (a *app) prepare(ctx context.Context, file string, warn bool) (*job, error) {
	source, err := readFile(ctx, file)
	if err != nil {
		return nil, err
	}
	c, err := chain.Parse(file, source)
	if err != nil {
		return nil, err
	}
	if warn {
		c.Policy.OnInfeasible = chain.Warn
	}
	a.progress("Looking at this host")
	j := &job{chain: c, source: source}
	if j.node, err = a.node(); err != nil {
		return nil, err
	}
	if j.inventory, err = a.inspect(ctx, j.node); err != nil {
		return nil, err
	}
	if err := withoutClaimed(j.inventory, j.node, c.Name); err != nil {
		return nil, err
	}
	j.plan, err = plan.Make(c, j.inventory)
	var infeasible *plan.Infeasible
	if errors.As(err, &infeasible) {
		return j, &codeError{exitInfeasible, err}
	}
	return j, err
}

// readFile waits for a pipe that nobody writes to, but no longer than ctx.
func readFile(ctx context.Context, file string) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := chain.ReadFile(file)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *app) inspect(ctx context.Context, n *node.Node) (*inventory.Inventory, error) {
	inv, err := doctor.Inspect(ctx, n.Transports, n.Runtimes, instruments())
	a.endProgress()
	if err != nil {
		return nil, err
	}
	return inv, doctor.Recall(inv, n.StateDir)
}

func instruments() []doctor.Prober {
	var probers []doctor.Prober
	for _, i := range instrument.All() {
		probers = append(probers, i)
	}
	return probers
}

// withoutClaimed takes away the CPUs that other chains have for themselves.
func withoutClaimed(inv *inventory.Inventory, n *node.Node, self string) error {
	claimed, err := n.ClaimedCPUs()
	if err != nil {
		return err
	}
	for chainName, cpus := range claimed {
		if chainName == self {
			continue
		}
		inv.Host.CPUs = slices.DeleteFunc(inv.Host.CPUs, func(cpu int) bool { return slices.Contains(cpus, cpu) })
	}
	return nil
}

func (a *app) planCommand() *cobra.Command {
	var warn, verbose bool
	cmd := &cobra.Command{
		Use:     "plan FILE",
		Short:   "Show what would be done with a chain, and why; change nothing",
		Example: "  dray plan examples/f1-split.yaml\n  dray plan examples/fronthaul-on-bridge.yaml --json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			j, err := a.prepare(cmd.Context(), argv[0], warn)
			if j == nil {
				return err
			}
			return errors.Join(err, a.printPlan(j, verbose))
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also show every rejected transport and every address")
	addWarnFlag(cmd, &warn)
	return cmd
}

func (a *app) printPlan(j *job, verbose bool) error {
	p := j.plan
	if a.json {
		return a.printJSON(p)
	}
	return p.Text(a.out, verbose)
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show what this host can do, what is missing, and how to get it",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.progress("Trying every transport, runtime, qdisc and instrument")
			n, err := a.node()
			if err != nil {
				return err
			}
			inv, err := a.inspect(cmd.Context(), n)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(inv)
			}
			return doctor.Text(a.out, inv)
		},
	}
}

// printTo writes to a file that is replaced only when it is complete.
func printTo(path string, write func(io.Writer) error) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return os.Rename(path+".new", path)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
)

// count is "1 link", "2 links".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func addWarnFlag(cmd *cobra.Command, warn *bool) {
	cmd.Flags().BoolVar(warn, "warn", false, "continue even if a requirement is not expected to be met (like policy.on_infeasible: warn)")
}

// prepare reads, checks and plans a chain file. An infeasible chain is an error
// with its exit code; prepare still returns the job.
func (a *app) prepare(ctx context.Context, file string, warn bool) (*chainrun.Job, error) {
	j, err := a.read(ctx, file, warn)
	if err != nil {
		return nil, err
	}
	return j, a.plan(ctx, j)
}

// read reads and checks a chain file.
func (a *app) read(ctx context.Context, file string, warn bool) (*chainrun.Job, error) {
	if file == "-" {
		file = standardInput
	}
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
	n, err := a.node()
	return &chainrun.Job{Chain: c, Source: source, Node: n}, err
}

// plan plans a chain for this host in its current state.
func (a *app) plan(ctx context.Context, j *chainrun.Job) error { return a.planChange(ctx, j, nil) }

// planChange is plan for a chain that replaces live, unless that is nil: what live has
// taken is the chain's own.
func (a *app) planChange(ctx context.Context, j *chainrun.Job, live *node.Live) (err error) {
	a.progress("Looking at this host")
	if j.Inventory, err = a.inspectFor(ctx, j.Chain, j.Node); err != nil {
		return err
	}
	if err := j.Node.LeaveOutClaimed(j.Inventory, j.Chain.Name); err != nil {
		return err
	}
	var held plan.Held
	if live != nil {
		countOwn(j.Inventory, live, "")
		held = live.HeldCPUs(j.Chain)
	}
	makePlan := plan.Remake
	if a.explain {
		makePlan = plan.Explain
	}
	if j.Plan, err = makePlan(j.Chain, j.Inventory, held); j.Plan != nil {
		j.Plan.PlaceIn(j.Chain)
		err = withCommands(j.Chain, j.Plan, err)
	}
	var infeasible *plan.Infeasible
	if errors.As(err, &infeasible) {
		return &codeError{exitInfeasible, err}
	}
	return err
}

// planToRun is plan for a chain that is brought up, so this machine must be able to
// simulate its hosts.
func (a *app) planToRun(ctx context.Context, j *chainrun.Job) error {
	if err := a.plan(ctx, j); err != nil {
		return err
	}
	return simulable(j.Plan)
}

// simulable is the refusal of a plan for hosts that this machine cannot simulate.
func simulable(p *plan.Plan) error {
	if err := p.Simulable(); err != nil {
		return &codeError{exitInfeasible, err}
	}
	return nil
}

// withCommands rejects a plan if a function has no program to run: finding out
// needs no start.
func withCommands(c *chain.Chain, p *plan.Plan, err error) error {
	violations, notes := doctor.CheckCommands(c)
	p.Warnings = append(p.Warnings, notes...)
	if len(violations) == 0 {
		return err
	}
	p.Violations = append(p.Violations, violations...)
	return &plan.Infeasible{Plan: p}
}

// standardInput is the file for "-".
const standardInput = "/dev/stdin"

// readFile waits for a pipe without a writer, until ctx ends.
func readFile(ctx context.Context, file string) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := parse.ReadFile(file)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inspect tries all that this host may do.
func (a *app) inspect(ctx context.Context, n *node.Node) (*inventory.Inventory, error) {
	inv, err := doctor.Inspect(ctx, n.Transports, n.Runtimes, instruments())
	return a.recalled(n, inv, err)
}

// inspectFor tries what a chain needs.
func (a *app) inspectFor(ctx context.Context, c *chain.Chain, n *node.Node) (*inventory.Inventory, error) {
	inv, err := doctor.InspectFor(ctx, c, n.Transports, n.Runtimes)
	return a.recalled(n, inv, err)
}

func (a *app) recalled(n *node.Node, inv *inventory.Inventory, err error) (*inventory.Inventory, error) {
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

func (a *app) planCommand() *cobra.Command {
	var warn bool
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show how a chain would be built, and why; change nothing",
		Long: "Show how a chain would be built, and why; change nothing. FILE may be - for standard input. --verbose also\n" +
			"shows every rejected transport and every address. --explain shows, for each function that the planner placed,\n" +
			"the hosts that it is not on, and for each link the transports that it does not get, with the reasons.",
		Example: "  dray plan examples/f1-split.yaml\n  dray plan examples/fronthaul-on-bridge.yaml --json\n  dray plan examples/placement.yaml --explain",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			j, err := a.prepare(cmd.Context(), argv[0], warn)
			if j == nil || j.Plan == nil {
				return err
			}
			return errors.Join(err, a.printPlan(j))
		},
	}
	addWarnFlag(cmd, &warn)
	cmd.Flags().BoolVar(&a.explain, "explain", false, "list the alternatives for each function and link, and why they lost")
	return cmd
}

func (a *app) printPlan(j *chainrun.Job) error {
	p := j.Plan
	if a.json {
		return a.printJSON(schemaPlan, p)
	}
	return a.printText(func(w io.Writer, width int) error {
		if !a.explain {
			return p.Text(w, width, a.verbose)
		}
		return p.Explained(w, width, a.verbose)
	})
}

// printTo replaces a file atomically. If several replace it at once, one wins.
func printTo(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

const applyLong = `Apply a changed chain file to the running chain of the same name. dray shows the
difference, and touches only what differs:

  restart  a function whose command, environment or restart policy changes
  add      a new function or link
  remove   a function or link that the file no longer has
  replace  a link that must be rebuilt: its ports disappear for a moment
  move     a link between native ports to another transport, or to other queues, under traffic
  update   recorded values only, such as a link's requirements
  keep     nothing: it is wrong, and cannot be made again while the chain is up

What has gone wrong since becomes as the file says, too: a command that has failed is started again, and a link whose
ports somebody has deleted or changed is replaced.

Everything else keeps running, with its traffic. A change that needs the chain to
be down, such as another runtime for a function, is refused before anything is
touched. After an error, run the command again.`

func (a *app) applyCommand() *cobra.Command {
	var dry, warn bool
	cmd := &cobra.Command{
		Use:     "apply FILE",
		Short:   "Apply a changed file to a running chain, touching only what differs",
		Long:    applyLong,
		Example: "  dray apply examples/f1-split.yaml --dry-run\n  dray apply examples/f1-split.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, argv []string) error { return a.apply(cmd.Context(), argv[0], warn, dry) },
	}
	addWarnFlag(cmd, &warn)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the difference, change nothing")
	return cmd
}

func (a *app) apply(ctx context.Context, file string, warn, dry bool) error {
	j, err := a.read(ctx, file, warn)
	if err != nil {
		return err
	}
	live, err := j.Node.OpenLocked(ctx, j.Chain.Name)
	if err != nil {
		return err
	}
	started := time.Now()
	changes, err := a.differs(ctx, j, live)
	if err == nil && !dry {
		err = a.applyChanges(ctx, j, live, changes)
	}
	if err := errors.Join(err, live.Release()); err != nil {
		return err
	}
	return a.printApplied(j.Chain.Name, changes, dry, time.Since(started))
}

// differs plans the changed chain, and compares it with the running one.
func (a *app) differs(ctx context.Context, j *chainrun.Job, live *node.Live) ([]node.Change, error) {
	var err error
	for _, free := range []bool{false, true} {
		pinned, fault := chain.Parse(j.Chain.File, j.Source)
		if fault != nil {
			return nil, fault
		}
		pinned.Policy = j.Chain.Policy // with --warn
		live.Pin(pinned, free)
		planned := &chainrun.Job{Chain: pinned, Node: j.Node}
		err = a.planChange(ctx, planned, live)
		j.Plan = planned.Plan
		var infeasible *plan.Infeasible
		if !errors.As(err, &infeasible) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if err := simulable(j.Plan); err != nil {
		return nil, err
	}
	j.Plan.PlaceIn(j.Chain)
	wrong, err := live.Wrong(ctx)
	if err != nil {
		return nil, err
	}
	return live.Difference(j.Chain, j.Plan, wrong), nil
}

func (a *app) applyChanges(ctx context.Context, j *chainrun.Job, live *node.Live, changes []node.Change) error {
	var refused []string
	for _, c := range changes {
		if c.Refused != "" {
			refused = append(refused, fmt.Sprintf("%s %s: %s", c.What, c.Name, c.Refused))
		}
	}
	if len(refused) > 0 {
		return &fixableError{
			Text: "nothing was touched, because these changes are impossible while the chain is up:\n  " + strings.Join(refused, "\n  "),
			Fix:  fmt.Sprintf("dray down %s, then dray up %s", j.Chain.Name, j.Chain.File),
		}
	}
	if len(changes) > 0 {
		a.progress("Applying %s to %s", count(len(changes), "change"), j.Chain.Name)
	}
	defer a.endProgress()
	if err := live.Apply(ctx, j.Chain, j.Source, j.Plan, changes, node.Settle); err != nil {
		return live.WithLogs(err)
	}
	return nil
}

func (a *app) printApplied(name string, changes []node.Change, dry bool, took time.Duration) error {
	switch {
	case a.json && dry:
		return a.printJSON(schemaDifference, map[string]any{"chain": name, "changes": changes})
	case a.json:
		return a.printJSON(schemaChain, map[string]any{"chain": name, "state": "up", "seconds": took.Seconds(), "changes": changes})
	case len(changes) == 0:
		fmt.Fprintf(a.out, "%s is up as the file says: nothing to change\n", name)
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, c := range changes {
		what := string(c.Action)
		if c.Refused != "" {
			what = "refused"
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s%s\n", what, c.What, c.Name, strings.Join(c.Fields, ", "), orEmpty(": ", cmp.Or(c.Refused, c.Why)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	kept := ""
	if slices.ContainsFunc(changes, func(c node.Change) bool { return c.Action == node.Keep }) {
		kept = ", but for what is kept"
	}
	if !dry {
		fmt.Fprintf(a.out, "%s is up as the file says%s (%.2f s)\n", name, kept, took.Seconds())
	}
	return nil
}

// pointToApply adds a hint to the error of `dray up` for a running chain: how to
// apply the file's changes, if any.
func (a *app) pointToApply(j *chainrun.Job, err error) error {
	var exists *node.ExistsError
	if !errors.As(err, &exists) {
		return err
	}
	live, gone := j.Node.Open(j.Chain.Name)
	if gone != nil {
		return err
	}
	if source, gone := os.ReadFile(live.ChainFile()); gone != nil || string(source) == string(j.Source) {
		return err
	}
	return &fixableError{Text: fmt.Sprintf("chain %s is already up, from another version of the file", j.Chain.Name), Fix: "dray apply " + shellWords([]string{j.Chain.File})}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// relinkInterval is the time between two looks at a link that moves.
const relinkInterval = 200 * time.Millisecond

func (a *app) clusterRelinkCommand(k *cluster.Kubectl) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "relink CHAIN LINK TRANSPORT",
		Short: "Move a link of running pods to another transport, under traffic",
		Long: "Name another transport for a link in the spec of a chain, and wait until the nodes have moved the link. Pods are\n" +
			"not restarted: their ports stay open, with the same addresses, MTU and queues. All ports of the link must be\n" +
			"native or dpdk. TRANSPORT is shm, bridge, or auto: what the planner would choose. The link is planned again\n" +
			"first, and what cannot be done is refused (exit code 3) before anything changes. A link whose transport is\n" +
			"named cannot cross nodes; auto permits it again.",
		Example: "  kubectl dray relink f1 f1u bridge\n  kubectl dray relink f1 f1u auto",
		Args:    args(cobra.ExactArgs(3)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return a.relinkInCluster(cmd.Context(), k, argv, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "longest wait for the nodes")
	return cmd
}

func (a *app) relinkInCluster(ctx context.Context, k *cluster.Kubectl, argv []string, timeout time.Duration) error {
	c, err := k.Chain(ctx, argv[0])
	if err != nil {
		return err
	}
	link, transport := argv[1], argv[2]
	change, err := c.Relinking(link, transport)
	if err != nil {
		return err
	}
	nodes, err := k.Nodes(ctx)
	if err != nil {
		return err
	}
	planned, moves, err := planRelink(c, change, nodes)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := k.Relink(ctx, change); err != nil {
		return err
	}
	if err := a.awaitMoves(ctx, k, c, moves, timeout); err != nil {
		back := fmt.Sprintf("kubectl dray relink -n %s %s %s %s", c.Metadata.Namespace, argv[0], link, cmp.Or(change.Was, chain.TransportAuto))
		return &cluster.Error{Text: fmt.Sprintf("link %s of %s: %v", link, c.Name(), err), Fix: back}
	}
	return a.showRelinked(c.Name(), link, planned, time.Since(started))
}

// planRelink plans a change. It returns the plan, and the names of the links that are made
// in another way. What nodes or running pods cannot have is an error.
func planRelink(c *cluster.Chain, change *cluster.Relinking, nodes []fleet.Node) (*plan.Plan, []string, error) {
	before, err := choose(c, c.Spec, nodes)
	if err != nil {
		return nil, nil, err
	}
	after, err := choose(c, change.Spec, nodes)
	if err != nil {
		return nil, nil, err
	}
	var moves []string
	for i, was := range before.Plan.Links { // the same links in both
		to := after.Plan.Links[i]
		if fleet.Same(was, to) {
			continue
		}
		if err := checkRelink(was, to, c, after); err != nil {
			return nil, nil, &codeError{exitInfeasible, fmt.Errorf("link %s cannot move from %s to %s: %w", to.Name, was.Transport, to.Transport, err)}
		}
		moves = append(moves, to.Name)
	}
	return after.Plan, moves, nil
}

// choose plans a chain with that spec.
func choose(c *cluster.Chain, spec []byte, nodes []fleet.Node) (fleet.Choice, error) {
	parsed, err := manifest.Parse(c.Metadata.Name, spec)
	if err != nil {
		return fleet.Choice{}, err
	}
	choice := fleet.Choose(fleet.Plan(parsed, nodes))
	switch {
	case choice.Plan == nil && len(nodes) == 0:
		return choice, errors.New(choice.String())
	case choice.Plan == nil:
		return choice, &codeError{exitInfeasible, errors.New(choice.String())}
	}
	return choice, nil
}

// checkRelink is why a link of running pods cannot become another one.
func checkRelink(was, to plan.Link, c *cluster.Chain, after fleet.Choice) error {
	if err := fleet.CanBecome(was, to); err != nil {
		return fmt.Errorf("%w; change the spec, and replace its pods", err)
	}
	var where []string
	for _, e := range c.Link(to.Name).Ends {
		if e.Node == "" || slices.Contains(where, e.Node) {
			continue
		}
		if where = append(where, e.Node); !slices.Contains(after.Nodes, e.Node) {
			return fmt.Errorf("its pod %s is on %s, and the chain may then be %s", e.Pod, e.Node, after)
		}
	}
	if len(where) > 1 && after.Across.Link(to.Name) == nil {
		return fmt.Errorf("its ends are on different nodes (%s), and it could not cross: %s", strings.Join(where, ", "), after.Across.Why[to.Name])
	}
	return nil
}

// errMoved ends the wait for the nodes.
var errMoved = errors.New("moved")

// awaitMoves waits until every node has moved its ends of links.
func (a *app) awaitMoves(ctx context.Context, k *cluster.Kubectl, c *cluster.Chain, moves []string, timeout time.Duration) error {
	said, deadline := "", time.Now().Add(timeout)
	err := every(ctx, relinkInterval, -1, func(ctx context.Context) error {
		now, err := k.ChainIn(ctx, c.Metadata.Namespace, c.Metadata.Name)
		if err != nil {
			return err
		}
		wait := lagging(now, c.Metadata.Generation, moves)
		switch {
		case wait == "":
			return errMoved
		case !time.Now().Before(deadline):
			return fmt.Errorf("not moved after %v: %s", timeout, wait)
		case wait != said && said != "":
			a.progress("Waiting: %s", wait)
		}
		said = wait
		return nil
	})
	switch {
	case errors.Is(err, errMoved):
		return nil
	case err == nil:
		return context.Cause(ctx)
	}
	return err
}

// lagging is what is not yet as planned since that generation of the spec; "" if nothing.
func lagging(c *cluster.Chain, before int64, moves []string) string {
	state, detail := stateOf(c)
	if state != stateReady && state != stateWaiting || c.Metadata.Generation == before && len(moves) > 0 {
		return detail
	}
	for _, name := range moves {
		now := c.Link(name)
		for _, e := range now.Ends {
			if e.Node != "" && e.Transport != now.Transport {
				return fmt.Sprintf("the node %s has %s on %s; %s", e.Node, e.Name(), orDash(e.Transport), detail)
			}
		}
	}
	return ""
}

// showRelinked prints which transport a link has now. Its instances have the same.
func (a *app) showRelinked(name, link string, planned *plan.Plan, took time.Duration) error {
	l := planned.Link(link)
	if l == nil {
		l = planned.Link(chain.Numbered(link, 0))
	}
	a.endProgress()
	if a.json {
		return a.printJSON(schemaLink, map[string]any{"chain": name, "link": link, "transport": l.Transport, "seconds": took.Seconds()})
	}
	fmt.Fprintf(a.out, "link %s of %s now uses %s (%.2f s)\n", link, name, l.Transport, took.Seconds())
	return nil
}

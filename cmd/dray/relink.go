// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/inventory"
)

func (a *app) relinkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "relink CHAIN LINK TRANSPORT",
		Short: "Move a link between native ports to another transport, under traffic",
		Long: "Put another transport behind a link of a running chain. The link's ports must all be native: they stay\n" +
			"open, with the same names, addresses, MTU and queues, and the applications see a new generation. The link\n" +
			"is planned again, and a transport that cannot meet its requirements is refused (exit code 3).",
		Example: "  dray relink echo echo veth\n  dray relink echo echo shm",
		Args:    args(cobra.ExactArgs(3)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			n, err := a.node()
			if err != nil {
				return err
			}
			live, err := n.OpenLocked(cmd.Context(), argv[0])
			if err != nil {
				return err
			}
			err = a.relink(cmd.Context(), n, live, argv[1], argv[2])
			return errors.Join(err, live.Release())
		},
	}
}

func (a *app) relink(ctx context.Context, n *node.Node, live *node.Live, link, transport string) error {
	to, err := a.replan(ctx, n, live, link, transport)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := live.Move(ctx, to); err != nil {
		return err
	}
	a.endProgress()
	if a.json {
		return a.printJSON(schemaLink, map[string]any{"chain": live.Chain.Name, "link": link, "transport": to.Transport, "seconds": time.Since(started).Seconds()})
	}
	fmt.Fprintf(a.out, "link %s of %s now uses %s (%.2f s)\n", link, live.Chain.Name, to.Transport, time.Since(started).Seconds())
	return nil
}

// countOwn counts what the chain has taken of the host as still available, except the
// virtual functions of one link.
func countOwn(inv *inventory.Inventory, live *node.Live, but string) {
	keepVFs(inv, live, but)
	live.CountOwn(inv)
}

// keepVFs counts the virtual functions of the chain's links, except one, as still
// available.
func keepVFs(inv *inventory.Inventory, live *node.Live, but string) {
	for _, l := range live.State.Plan.Links {
		t := inv.Transport(l.Transport)
		if l.Name == but || t == nil || !t.Caps.VFs {
			continue
		}
		t.Status = inventory.OK
		for i := range inv.Interfaces {
			inv.Interfaces[i].VFs += ports(l)
		}
	}
}

func ports(l plan.Link) int {
	n := 0
	for _, e := range l.Ends {
		if e.Uplink == "" {
			n++
		}
	}
	return n
}

// replan plans another transport for one link of a running chain.
func (a *app) replan(ctx context.Context, n *node.Node, live *node.Live, link, transport string) (plan.Link, error) {
	found := false
	for i := range live.Chain.Links {
		if l := &live.Chain.Links[i]; l.Name == link {
			l.Transport, found = transport, true
		}
	}
	if !found {
		return plan.Link{}, fmt.Errorf("chain %s has no link %q; `dray status %[1]s` lists its links", live.Chain.Name, link)
	}
	inv, err := a.inspectFor(ctx, live.Chain, n)
	if err != nil {
		return plan.Link{}, err
	}
	if err := n.LeaveOutClaimed(inv, live.Chain.Name); err != nil {
		return plan.Link{}, err
	}
	countOwn(inv, live, link)
	live.PinPlaces(live.Chain)
	p, err := plan.Remake(live.Chain, inv, live.HeldCPUs(live.Chain))
	var infeasible *plan.Infeasible
	if errors.As(err, &infeasible) {
		return plan.Link{}, &codeError{exitInfeasible, err}
	}
	if err != nil {
		return plan.Link{}, err
	}
	return *p.Link(link), nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/result/verdict"
)

const clusterVerifyLong = `Wait until the nodes have decided every requirement of a chain, and show the
verdicts. They judge the last two minutes of the applications' own traffic;
nothing is sent. Bitrates and packet rates are met once traffic reaches them.
That and the MTU may never be decided, so they are not waited for.

With --active, measure instead: start a copy of the chain on the same nodes,
with draygen in place of each function, send traffic on the copy's links, judge
it as dray verify does on one host, and delete the copy. The chain itself goes
on, and shares the nodes' CPUs. Links of a function with several pods are measured
once for each pair of nodes. A bitrate of TCP is measured by iperf3, a link of
DPDK's own devices by draygen-dpdk. A delay between nodes, which have two clocks,
is shown as the nodes see it; what else cannot be decided says why.

With --paths as well, measure the chain's paths from end to end. Functions between
the ends must pass packets on, so a second copy runs copies of their own pods: the
same images, commands and volumes, without labels and service account. What these
programs do elsewhere, such as registering somewhere, they do twice.

The records of --active and a page go to out/CHAIN-TIME, or the directory of
--out; dray report and kubectl dray report show them again. If the default
directory cannot be created, as on a read-only file system, a warning says so,
and the verdicts are only printed. Without --active, nothing is measured, so
there are no records: kubectl dray report writes a page of what the nodes see.`

func (a *app) clusterVerifyCommand(k *cluster.Kubectl) *cobra.Command {
	var timeout time.Duration
	var active activeFlags
	cmd := &cobra.Command{
		Use:     "verify CHAIN",
		Short:   "Show the verdict on every requirement of a chain, or measure its links",
		Long:    clusterVerifyLong,
		Example: "  kubectl dray verify f1 -n f1-split\n  kubectl dray verify f1 --timeout 1m --json\n  kubectl dray verify f1 --active --profile quick --out /tmp/f1",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := active.check(cmd); err != nil {
				return err
			}
			if active.on {
				active.timeout = timeout
				return a.verifyActively(cmd.Context(), k, argv[0], active)
			}
			return a.verifyCluster(cmd.Context(), k, argv[0], timeout)
		},
	}
	addVerdictTimeoutFlag(cmd, &timeout)
	active.add(cmd)
	return cmd
}

// addVerdictTimeoutFlag bounds the wait for verdicts.
func addVerdictTimeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	cmd.Flags().DurationVar(timeout, "timeout", 5*time.Minute, "longest wait; 0: judge by what is known now")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *timeout < 0 {
			return usageError("--timeout %v is negative", *timeout)
		}
		return nil
	}
}

func (a *app) verifyCluster(ctx context.Context, k *cluster.Kubectl, name string, timeout time.Duration) error {
	all, err := a.awaitVerdicts(ctx, timeout, func(ctx context.Context) ([]cluster.Chain, error) {
		return chains(ctx, k, []string{name}, false)
	})
	if err != nil {
		return fmt.Errorf("chain %s: %w", name, err)
	}
	return a.showChains(clusterChains(all))
}

// errDecided ends the wait for verdicts.
var errDecided = errors.New("decided")

// awaitVerdicts looks at chains until every requirement is decided, or the time is over.
func (a *app) awaitVerdicts(ctx context.Context, timeout time.Duration, look func(context.Context) ([]cluster.Chain, error)) ([]cluster.Chain, error) {
	var now []cluster.Chain
	said, deadline, late := "", time.Now().Add(timeout), false
	err := every(ctx, watchInterval, -1, func(ctx context.Context) error {
		all, err := look(ctx)
		if err != nil {
			return err
		}
		now = all
		wait := waitOf(all)
		if wait == "" {
			return errDecided
		}
		if !time.Now().Before(deadline) {
			a.progress("Undecided after %v: %s", timeout, wait)
			return errDecided
		}
		if wait != said && (late || !strings.HasSuffix(wait, unseen)) { // a new chain is seen soon
			a.progress("Waiting: %s", wait)
			said = wait
		}
		late = true
		return nil
	})
	switch {
	case errors.Is(err, errDecided):
		return now, nil
	case err == nil:
		err = context.Cause(ctx)
	}
	return nil, err
}

// waitOf is what chains need until every requirement is decided; "" if nothing. A chain
// without a plan is decided.
func waitOf(all []cluster.Chain) string {
	for i := range all {
		c := clusterChainOf(&all[i])
		refused := all[i].Seen() && (c.State == stateInfeasible || c.State == stateNotPlanned)
		if wait := c.waitsFor(); wait != "" && !refused {
			if len(all) > 1 {
				wait = "chain " + c.name() + ": " + wait
			}
			return wait
		}
	}
	return ""
}

// waitsFor is what a chain needs until every requirement is decided; "" if nothing.
func (s *clusterChain) waitsFor() string {
	if s.State != stateReady {
		return s.Detail
	}
	decided, all, first := 0, 0, ""
	for _, l := range s.Links {
		for i := range l.Requirements {
			q := &l.Requirements[i]
			if !verdict.Live(q.Requirement) {
				continue
			}
			all++
			switch {
			case q.Verdict != verdict.NotMeasurable:
				decided++
			case first == "":
				first = fmt.Sprintf("link %s, %s: %s", l.Name, q.Requirement, q.reason())
			}
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("%d of %s decided; %s", decided, count(all, "requirement"), first)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/result/verdict"
)

func (a *app) clusterVerifyCommand(k *cluster.Kubectl) *cobra.Command {
	timeout := 5 * time.Minute
	cmd := &cobra.Command{
		Use:   "verify CHAIN",
		Short: "Wait until every requirement of a chain is decided, and show the verdicts",
		Long: "Wait until the nodes have decided every requirement of a chain, and show the verdicts. They judge the last two\n" +
			"minutes of the applications' own traffic; nothing is sent. Bitrates and packet rates are met once traffic\n" +
			"reaches them. That and the MTU may never be decided, so they are not waited for.",
		Example: "  kubectl dray verify f1 -n f1-split\n  kubectl dray verify f1 --timeout 1m --json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if timeout < 0 {
				return usageError("--timeout %v is negative", timeout)
			}
			return a.verifyCluster(cmd.Context(), k, argv[0], timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "longest wait; 0: judge by what is known now")
	return cmd
}

// errDecided ends the wait for verdicts.
var errDecided = errors.New("decided")

func (a *app) verifyCluster(ctx context.Context, k *cluster.Kubectl, name string, timeout time.Duration) error {
	var now clusterChain
	said, deadline := "", time.Now().Add(timeout)
	err := every(ctx, watchInterval, -1, func(ctx context.Context) error {
		c, err := k.Chain(ctx, name)
		if err != nil {
			return err
		}
		now = clusterChainOf(c)
		wait := now.waitsFor()
		refused := c.Seen() && (now.State == stateInfeasible || now.State == stateNotPlanned)
		if refused || wait == "" {
			return errDecided
		}
		if !time.Now().Before(deadline) {
			a.progress("Undecided after %v: %s", timeout, wait)
			return errDecided
		}
		if wait != said {
			a.progress("Waiting: %s", wait)
		}
		said = wait
		return nil
	})
	switch {
	case errors.Is(err, errDecided):
		return a.showChains([]clusterChain{now})
	case err == nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("chain %s: %w", name, err)
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

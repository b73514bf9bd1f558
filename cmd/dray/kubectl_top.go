// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/measure/live"
)

func (a *app) clusterTopCommand(k *cluster.Kubectl) *cobra.Command {
	interval, samples, everywhere := watchInterval, -1, false
	cmd := &cobra.Command{
		Use:   "top [CHAIN]",
		Short: "Watch the links of chains: rate, latency, loss, verdict",
		Long: "Show, at every interval, what the applications report about their ports, and whether the last two minutes met\n" +
			"the requirements. The figures come from the pods of dray-node, which look every two seconds. On a terminal\n" +
			"the table is redrawn until q or Ctrl-C; otherwise, and with --json, each sample is appended.",
		Example: "  kubectl dray top\n  kubectl dray top f1 -n f1-split --interval 10s\n  kubectl dray top f1 --samples 1 --json",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			switch {
			case interval < time.Second:
				return usageError("--interval %v is shorter than dray-node's own: give 1s or more", interval)
			case samples == 0:
				return usageError("--samples 0 shows nothing: give 1 or more, or leave it out")
			}
			ctx, leave, err := a.untilKey(cmd.Context(), os.Stdin)
			if err != nil {
				return err
			}
			defer leave()
			return every(ctx, interval, samples-1, func(ctx context.Context) error {
				all, err := chains(ctx, k, argv, everywhere)
				if err != nil {
					return err
				}
				links, err := a.clusterLinks(ctx, k, all)
				if err != nil {
					return err
				}
				return a.drawLinks(links, interval)
			})
		},
	}
	cmd.Flags().DurationVarP(&interval, "interval", "i", interval, "time between samples")
	cmd.Flags().IntVar(&samples, "samples", samples, "stop after this many; negative: at Ctrl-C")
	addEverywhereFlag(cmd, &everywhere)
	return cmd
}

// nodesAtOnce bounds the calls of kubectl that run at the same time.
const nodesAtOnce = 8

// clusterLinks asks the nodes that have pods of the chains. A node that does not answer
// is left out with a warning, unless it is the only one.
func (a *app) clusterLinks(ctx context.Context, k *cluster.Kubectl, all []cluster.Chain) ([]live.Link, error) {
	wanted, nodes := map[string]bool{}, map[string]bool{}
	for i := range all {
		wanted[all[i].Name()] = true
		for _, n := range all[i].Nodes() {
			nodes[n] = true
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	agents, err := k.Agents(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(nodes))
	samples, errs := askNodes(ctx, k, agents, names)
	var links []live.Link
	for _, s := range samples {
		for _, l := range s.Links {
			if wanted[l.Chain] {
				links = withLink(links, l)
			}
		}
	}
	if failed := errors.Join(errs...); failed != nil {
		if len(links) == 0 || ctx.Err() != nil {
			return nil, failed
		}
		a.warn(failed)
	}
	return links, nil
}

// withLink adds a link. Of one between two nodes, of which both tell, it keeps what the node says
// that sees it work, and the traffic classes of both ends.
func withLink(links []live.Link, l live.Link) []live.Link {
	i := slices.IndexFunc(links, func(o live.Link) bool { return o.Chain == l.Chain && o.Status.Name == l.Status.Name })
	if i < 0 {
		return append(links, l)
	}
	ends := append(slices.Clone(links[i].Status.Ends), l.Status.Ends...)
	if better := func(l live.Link) bool { return l.Status.State == broker.StateActive && !l.Status.Late }; better(l) && !better(links[i]) {
		links[i] = l
	}
	links[i].Status.Ends = ends
	return links
}

// askNodes asks several nodes at once. Samples and errors are in the order of the names.
func askNodes(ctx context.Context, k *cluster.Kubectl, agents map[string]cluster.Agent, names []string) ([]live.Sample, []error) {
	samples, errs := make([]live.Sample, len(names)), make([]error, len(names))
	free := make(chan struct{}, nodesAtOnce)
	var all sync.WaitGroup
	for i, name := range names {
		agent, found := agents[name]
		if !found {
			errs[i] = fmt.Errorf("no pod of dray-node is ready on node %s", name)
			continue
		}
		all.Add(1)
		free <- struct{}{}
		go func() {
			defer all.Done()
			samples[i], errs[i] = k.Links(ctx, agent)
			<-free
		}()
	}
	all.Wait()
	return samples, errs
}

// drawLinks shows one sample.
func (a *app) drawLinks(links []live.Link, interval time.Duration) error {
	if a.json {
		return a.printLine(schemaSample, live.Sample{Time: time.Now(), Links: append([]live.Link{}, links...)})
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, "%s, every %v\n\n", time.Now().Format(time.TimeOnly), interval)
	if len(links) == 0 {
		fmt.Fprintln(&page, "no link has reported yet; `kubectl dray status` says what the chains wait for")
	} else if err := errors.Join(live.Text(&page, links, a.width()), live.ClassesText(&page, links, a.width())); err != nil {
		return err
	}
	return a.drawPage(page.Bytes())
}

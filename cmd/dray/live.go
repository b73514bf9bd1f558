// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/broker"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/telemetry"
)

// watched is how many intervals verdicts on live links rest on.
const watched = 60

// watcher samples the native links of the named chains, or of all.
func (a *app) watcher(names []string) (*telemetry.Watcher, error) {
	n, err := a.node()
	if err != nil {
		return nil, err
	}
	return &telemetry.Watcher{Keep: watched, Source: func(ctx context.Context) ([]telemetry.Chain, error) {
		return askBrokers(ctx, n, names)
	}}, nil
}

// askBrokers leaves out a chain that goes, or whose broker does not answer,
// where all were asked for.
func askBrokers(ctx context.Context, n *node.Node, names []string) ([]telemetry.Chain, error) {
	found, err := n.Brokered()
	if err != nil {
		return nil, err
	}
	var chains []telemetry.Chain
	for _, b := range found {
		if len(names) > 0 && !slices.Contains(names, b.Chain) {
			continue
		}
		c := telemetry.Chain{Planned: b.Links}
		c.Chain = b.Chain
		if c.Links, err = askBroker(ctx, b.Dir); err != nil && len(names) > 0 {
			return nil, fmt.Errorf("chain %s: %w", b.Chain, err)
		}
		c.At = time.Now()
		chains = append(chains, c)
	}
	if len(names) > 0 && len(chains) == 0 {
		return nil, fmt.Errorf("chain %s is not up, or has no native port; `dray status` shows what is up", names[0])
	}
	return chains, nil
}

func askBroker(ctx context.Context, dir string) ([]broker.LinkStatus, error) {
	client, err := broker.Dial(dir)
	if err != nil {
		return nil, err
	}
	return client.Status(ctx)
}

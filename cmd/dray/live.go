// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/node"
)

// watched is how many intervals a live link's verdict needs.
const watched = 60

// watcher samples the native links of the named chains, or of all.
func (a *app) watcher(names []string) (*live.Watcher, error) {
	n, err := a.node()
	if err != nil {
		return nil, err
	}
	return &live.Watcher{Keep: watched, Source: func(ctx context.Context) ([]live.Chain, error) {
		return askBrokers(ctx, n, names)
	}}, nil
}

// askBrokers skips a chain that goes away, or whose broker does not answer, if
// names is empty.
func askBrokers(ctx context.Context, n *node.Node, names []string) ([]live.Chain, error) {
	found, err := n.Brokered()
	if err != nil {
		return nil, err
	}
	var chains []live.Chain
	for _, b := range found {
		if len(names) > 0 && !slices.Contains(names, b.Chain) {
			continue
		}
		c, err := live.Ask(ctx, b)
		if err != nil && len(names) > 0 {
			return nil, err
		}
		chains = append(chains, c)
	}
	if len(names) > 0 && len(chains) == 0 {
		return nil, fmt.Errorf("chain %s is not up, or has no native port; `dray status` shows what is up", names[0])
	}
	return chains, nil
}

// glance watches for about a second, since verdicts need several intervals; not at
// all if there is nothing to watch.
func glance(ctx context.Context, w *live.Watcher) ([]live.Link, error) {
	const intervals, interval = 4, 250 * time.Millisecond
	var links []live.Link
	none := errors.New("no links")
	err := w.Watch(ctx, interval, intervals, func(now []live.Link) error {
		if links = now; len(links) == 0 {
			return none
		}
		return nil
	})
	if errors.Is(err, none) {
		err = nil
	}
	return links, errors.Join(err, ctx.Err())
}

// addLive adds the live links' figures, if any chain has one.
func (a *app) addLive(ctx context.Context, statuses []chainStatus) error {
	if !slices.ContainsFunc(statuses, func(s chainStatus) bool { return s.Broker != nil }) {
		return nil
	}
	w, err := a.watcher(nil)
	if err != nil {
		return err
	}
	links, err := glance(ctx, w)
	if err != nil {
		return err
	}
	for i := range statuses {
		for _, l := range links {
			if l.Chain == statuses[i].Chain {
				statuses[i].Live = append(statuses[i].Live, l)
			}
		}
	}
	return nil
}

// printLive adds the table of live links, if any.
func printLive(w io.Writer, width int, statuses []chainStatus) error {
	var links []live.Link
	for _, s := range statuses {
		links = append(links, s.Live...)
	}
	if len(links) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if err := live.Text(w, links, width); err != nil {
		return err
	}
	return live.ClassesText(w, links, width)
}

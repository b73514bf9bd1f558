// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

// carrier is a link whose processes a DPDK device cannot outlive: it finds no new one.
type carrier struct{ port, link string }

// carriers are those links of a function.
func (l *Live) carriers(f chain.Function) []carrier {
	var list []carrier
	for link, report := range l.State.Reports {
		for _, v := range report.Vdevs {
			if v.Function == f.Name && v.EndsWithLink {
				list = append(list, carrier{port: v.Port, link: link})
			}
		}
	}
	return list
}

// carriedBy is a process that carries a port.
type carriedBy struct {
	port    string
	process transport.Process
}

// awaitCarriers waits until those links' processes run, and returns them.
func (l *Live) awaitCarriers(ctx context.Context, list []carrier) ([]carriedBy, error) {
	var all []carriedBy
	deadline := time.Now().Add(peerPatience)
	for _, c := range list {
		for {
			revivals, err := l.Revivals()
			now := l.processes(c.link, revivals)
			if err == nil && !slices.ContainsFunc(now, func(p transport.Process) bool { return !p.ID.Alive() }) && revivals[c.link].Error == "" {
				for _, p := range now {
					all = append(all, carriedBy{c.port, p})
				}
				break
			}
			if time.Now().After(deadline) && err != nil {
				return nil, fmt.Errorf("port %s: %w", c.port, err)
			}
			if time.Now().After(deadline) {
				return nil, fmt.Errorf("port %s: the switch of link %s does not run within %v: see why with dray status", c.port, c.link, peerPatience)
			}
			if err := host.Sleep(ctx, 50*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// watchCarriers returns why the command must restart: a process has ended that carries
// one of its ports. It returns nil when ctx ends.
func watchCarriers(ctx context.Context, all []carriedBy) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan carriedBy, len(all))
	for _, c := range all {
		go func() {
			if c.process.ID.AwaitEnd(ctx) == nil {
				ended <- c
			}
		}()
	}
	select {
	case c := <-ended:
		return fmt.Errorf("port %s lost %s, its switch, and its driver does not find the next one", c.port, c.process.Name)
	case <-ctx.Done():
		return nil
	}
}

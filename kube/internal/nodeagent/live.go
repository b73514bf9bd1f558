// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/internal/claims"
)

// sampleEvery is the interval of in-band telemetry, and keepSamples how many
// intervals decide a verdict.
const (
	sampleEvery = 2 * time.Second
	keepSamples = 60
)

// watched is the latest state of the node's links.
type watched struct {
	watcher *live.Watcher
	latest  *atomic.Pointer[[]live.Link]
}

func watch(a *Agent) watched {
	return watched{watcher: &live.Watcher{Source: a.sample, Keep: keepSamples}, latest: new(atomic.Pointer[[]live.Link])}
}

// Links is the latest sample of the node's links, for metrics.
func (a *Agent) Links() []live.Link {
	if latest := a.live.latest.Load(); latest != nil {
		return *latest
	}
	return nil
}

// sample asks the broker for what the applications report.
func (a *Agent) sample(ctx context.Context) ([]live.Chain, error) {
	client, err := broker.Dial(a.links.dir)
	if err != nil {
		return nil, err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	all, err := a.store.List(ctx)
	if err != nil {
		return nil, err
	}
	return chainsOf(all, status, a.now()), nil
}

// chainsOf groups the broker's links by chain, "namespace/name".
func chainsOf(all []claims.Claim, status []broker.LinkStatus, at time.Time) []live.Chain {
	var chains []live.Chain
	index := map[string]int{}
	for _, s := range status {
		p := planned(all, s.Name)
		if p == nil {
			continue
		}
		chain := strings.TrimSuffix(s.Name, "/"+p.Link.Name)
		i, known := index[chain]
		if !known {
			i = len(chains)
			index[chain] = i
			var c live.Chain
			c.Chain, c.At, c.Links = chain, at, []broker.LinkStatus{}
			chains = append(chains, c)
		}
		s.Name = p.Link.Name
		chains[i].Links, chains[i].Planned = append(chains[i].Links, s), append(chains[i].Planned, p.Link)
	}
	return chains
}

// planned is a port of the broker's link, with its plan; nil if no claim has one.
func planned(all []claims.Claim, link string) *claims.Port {
	for i := range all {
		for j := range all[i].Ports {
			if linkOf(&all[i], &all[i].Ports[j]) == link {
				return &all[i].Ports[j]
			}
		}
	}
	return nil
}

// reportVerdicts judges the latest intervals and writes changes to the claims.
func (a *Agent) reportVerdicts(ctx context.Context) {
	links, err := a.live.watcher.Sample(ctx)
	if err != nil {
		a.logged("telemetry", err)
		return
	}
	a.live.latest.Store(&links)
	verdicts := map[string][]verdict.Verdict{}
	for _, l := range links {
		verdicts[l.Chain+"/"+l.Status.Name] = l.Verdicts
	}
	all, err := a.store.List(ctx)
	if err != nil {
		a.logged("telemetry", err)
		return
	}
	for i := range all {
		a.report(ctx, &all[i], verdicts)
	}
}

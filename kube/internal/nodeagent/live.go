// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/measure/live"
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
	watcher   *live.Watcher
	crossings crossings
	latest    *atomic.Pointer[live.Sample]
	judged    *atomic.Pointer[map[string]judgement] // by the broker's name of the link
	tunnels   *atomic.Pointer[tunnels]
}

func watch(a *Agent) watched {
	return watched{
		watcher: &live.Watcher{Source: a.sample, Keep: keepSamples}, crossings: crossings{}, latest: new(atomic.Pointer[live.Sample]),
		judged: new(atomic.Pointer[map[string]judgement]), tunnels: new(atomic.Pointer[tunnels]),
	}
}

// Links is the latest sample of the node's links, for metrics.
func (a *Agent) Links() []live.Link {
	if latest := a.live.latest.Load(); latest != nil {
		return latest.Links
	}
	return nil
}

// stale is the age at which a sample no longer tells how links are.
const stale = 3 * sampleEvery

// ServeLinks answers with the latest sample, for `kubectl dray top`.
func (a *Agent) ServeLinks(w http.ResponseWriter, _ *http.Request) {
	sample := live.Sample{Time: a.now(), Links: []live.Link{}}
	if latest := a.live.latest.Load(); latest != nil {
		old := sample.Time.Sub(latest.Time) > stale
		sample.Time = latest.Time
		for _, l := range latest.Links {
			sample.Links = append(sample.Links, brief(l, old))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	a.logged("links", json.NewEncoder(w).Encode(sample))
}

// brief is a link without what is large and in the sample twice, and of its ends only the traffic
// classes.
func brief(l live.Link, old bool) live.Link {
	l.Status.Ends, l.Status.Late = endsWithClasses(l.Status.Ends), l.Status.Late || old
	l.Window = withoutBuckets(l.Window)
	if len(l.Now) > 0 {
		l.Total = withoutBuckets(l.Total)
	}
	l.Verdicts = slices.Clone(l.Verdicts)
	for i := range l.Verdicts {
		v := &l.Verdicts[i]
		v.Trials, v.Directions = []string{}, slices.Clone(v.Directions)
		for j := range v.Directions {
			v.Directions[j].Trials = []string{}
		}
	}
	return l
}

// endsWithClasses are the ends of this node that have traffic classes, and nothing else of them.
func endsWithClasses(ends []broker.EndStatus) (some []broker.EndStatus) {
	for _, e := range ends {
		if e.Classes != nil {
			some = append(some, broker.EndStatus{Function: e.Function, Port: e.Port, Classes: e.Classes})
		}
	}
	return some
}

func withoutBuckets(flows []telemetry.Flow) []telemetry.Flow {
	flows = slices.Clone(flows)
	for i := range flows {
		flows[i].Latency.Buckets = nil
	}
	return flows
}

// sample asks the broker for what the applications report.
func (a *Agent) sample(ctx context.Context) ([]live.Chain, error) {
	all, err := a.limited(ctx)
	if err != nil {
		return nil, err
	}
	ports := 0
	for i := range all {
		ports += len(all[i].Ports)
	}
	a.Metrics.Holds(len(all), ports)
	status, err := a.links.status(ctx)
	if err != nil {
		a.Metrics.BrokerSilent()
		return nil, err
	}
	a.Metrics.BrokerAnswered(len(status))
	return chainsOf(all, status, a.now()), nil
}

// limited are all claims, with what is required of their links now.
func (a *Agent) limited(ctx context.Context) ([]claims.Claim, error) {
	all, err := a.store.List(ctx)
	a.links.peers.limit(all)
	return all, err
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

// judge judges the latest intervals. It never waits for the API server, so metrics go on
// without one.
func (a *Agent) judge(ctx context.Context) {
	links, err := a.live.watcher.Sample(ctx)
	if err != nil {
		a.logged("telemetry", err)
		return
	}
	all, err := a.limited(ctx)
	if err != nil {
		a.logged("telemetry", err)
		return
	}
	links = addInterfaceLinks(all, links)
	judged := a.live.crossings.judge(ctx, all, links, latest(a.live.tunnels), a.links.net.Measured, a.now())
	a.live.latest.Store(&live.Sample{Time: a.now(), Links: links})
	a.live.judged.Store(&judged)
	a.reportSoon()
}

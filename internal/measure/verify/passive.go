// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

const (
	// stampRate is how many packets of a direction libdray stamps per second, if the
	// application sends as many.
	stampRate = 256
	// longestObserved is how many intervals a first look takes at most.
	longestObserved = 120
)

// observation watches the own traffic of links that applications hold, all at once. A
// round is one interval.
type observation struct {
	links  []plan.Link
	rounds int
	before int // rounds run before this look
	look   int // see record.Trial
}

func heldLinks(p *plan.Plan, o Options) []plan.Link {
	var held []plan.Link
	for _, l := range p.Links {
		if slices.Contains(o.Held, l.Name) {
			held = append(held, l)
		}
	}
	return held
}

// intervals is how many intervals the percentiles of held links take, if their
// applications send enough.
func intervals(p *plan.Plan, o Options) int {
	pace := o.pace()
	n := pace.observed
	if o.Rounds > 0 {
		return n
	}
	for _, l := range heldLinks(p, o) {
		if needsLatency(l.Requires) {
			n = max(n, int(math.Ceil(pace.surplus*percentileSamples(l)/(stampRate*o.interval().Seconds()))))
		}
	}
	return min(n, longestObserved)
}

// interval is how long one observation takes.
func (o Options) interval() time.Duration { return orElse(o.Duration, shortest) }

// items are the runner's items; observe observes, or is nil if only the sizes matter.
func (w observation) items(o Options, observe func(context.Context, observation, *runner.Turn) error) []runner.Item {
	if len(w.links) == 0 {
		return nil
	}
	var ids []string
	for _, l := range w.links {
		for _, d := range verdict.FromPlan(l).Directions {
			ids = append(ids, w.id(l.Name, d))
		}
	}
	return []runner.Item{{
		ID: "own-traffic", Title: "own traffic of " + w.names(), Trials: ids, From: w.before, Rounds: w.before + w.rounds, NoWarmup: true, OwnMeter: true,
		Expect:  o.interval(),
		Measure: func(ctx context.Context, t *runner.Turn) error { return observe(ctx, w, t) },
	}}
}

func (observation) id(link string, d verdict.Direction) string {
	return link + "-own-" + d.From + "-" + d.To
}

func (w observation) names() string {
	var names []string
	for _, l := range w.links {
		names = append(names, l.Name)
	}
	if len(names) == 1 {
		return "link " + names[0]
	}
	return "links " + strings.Join(names, ", ")
}

// undecided are the links of which a judge needs more, with the rounds that make them
// verdict.Prolonged times as many.
func (w observation) undecided(trials []record.Trial) observation {
	again := observation{rounds: (verdict.Prolonged - 1) * w.rounds, before: w.rounds, look: 1}
	for _, l := range w.links {
		if len(verdict.Undecided(verdict.OfRun(l, trials), trials)) > 0 {
			again.links = append(again.links, l)
		}
	}
	if len(again.links) == 0 {
		return observation{}
	}
	return again
}

// observe makes a trial for each direction of each link.
func (in Input) observe(ctx context.Context, w observation, t *runner.Turn) error {
	began := time.Now()
	flows, env, err := in.ownTraffic(ctx, w)
	if ctx.Err() != nil {
		return runner.Interrupted(ctx, err)
	}
	for _, l := range w.links {
		for _, d := range verdict.FromPlan(l).Directions {
			trial, failed := flows[d], err
			if trial.Link == "" && err == nil {
				failed = fmt.Errorf("the ports of link %s report nothing", l.Name)
			}
			trial.ID, trial.From, trial.To, trial.Quantity, trial.Passive = t.TrialID(w.id(l.Name, d)), d.From, d.To, record.QStream, true
			trial.Start, trial.Env = began, env
			trial.Instrument = record.Instrument{Name: "libdray", Client: []string{}, Server: []string{}, Placement: "in the applications, which report their own traffic"}
			in.complete(&trial, l, w.look)
			if err := t.Record(trial, nil, failed); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownTraffic is what an interval shows of each direction, and how busy the machine was.
func (in Input) ownTraffic(ctx context.Context, w observation) (map[verdict.Direction]record.Trial, record.Environment, error) {
	var env record.Environment
	before, err := host.ReadCPUTimes()
	if err != nil {
		return nil, env, err
	}
	flows := map[verdict.Direction]record.Trial{}
	watcher := live.Watcher{Source: in.Live, Keep: 1}
	err = watcher.Watch(ctx, in.Options.interval(), 1, func(links []live.Link) error {
		for _, l := range links {
			for _, f := range l.Now {
				flows[verdict.Direction{From: f.From, To: f.To}] = live.Trial(f, 0)
			}
		}
		return nil
	})
	if err != nil {
		return nil, env, err
	}
	now, err := host.ReadCPUTimes()
	if err == nil {
		env.BusyDuring, env.Stolen = now.Since(before)
	}
	return flows, env, err
}

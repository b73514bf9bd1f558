// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/sockpath"
)

// Links measures every link of the plan over its own ports and returns the
// records, even those before an error. A failed trial is a record with Error; the
// only errors are a cancelled context, a failing Sink, or a function without a
// sandbox.
func Links(ctx context.Context, in Input) ([]record.Trial, error) {
	in.Options.Far = in.Options.Far || in.Far != nil
	ms := matrix(in.Plan, in.Options)
	if err := in.allRun(ms); err != nil {
		return nil, err
	}
	made := collect(in.Sink, in.Earlier)
	own := observation{links: heldLinks(in.Plan, in.Options), rounds: intervals(in.Plan, in.Options)}
	if err := in.runner(ms, own, made).Run(ctx); err != nil || in.Options.pace().looks < verdict.MaxLooks {
		return made.trials, err
	}
	err := in.prolong(ctx, ms, own, made)
	return made.trials, err
}

// allRun is an error if a port's function does not run on this machine, as it must.
func (in Input) allRun(ms []measurement) error {
	for _, m := range ms {
		for _, e := range []plan.End{m.from, m.to} {
			if in.Far == nil && in.Sandboxes[e.Function] == nil {
				return fmt.Errorf("link %s: function %s is not running: `dray up` the chain first", m.link.Name, e.Function)
			}
		}
	}
	return nil
}

// collector keeps the records of a run, including those of earlier processes.
type collector struct {
	sink   runner.Sink // nil: only kept
	trials []record.Trial
	done   map[string]bool
}

func collect(sink runner.Sink, earlier []record.Trial) *collector {
	c := &collector{sink: sink, trials: earlier, done: map[string]bool{}}
	for _, t := range earlier {
		c.done[t.ID] = true
	}
	return c
}

func (c *collector) Write(t record.Trial) error {
	if c.sink != nil {
		if err := c.sink.Write(t); err != nil {
			return err
		}
	}
	c.trials, c.done[t.ID] = append(c.trials, t), true
	return nil
}

// runner is the runner of some of the chain's measurements, and of an observation.
func (in Input) runner(ms []measurement, own observation, made *collector) *runner.Runner {
	r := newRunner(in.Options, append(items(ms, in.run), own.items(in.Options, in.observe)...))
	r.ID, r.Sink, r.Done, r.Env, r.Own, r.Progress = in.Run, made, made.done, in.Env, in.Own, in.Progress
	r.OtherRuns, r.Elsewhere = in.OtherRuns, in.Far != nil
	return r
}

func newRunner(o Options, list []runner.Item) *runner.Runner {
	p := o.pace()
	return &runner.Runner{Seed: o.Seed, Rounds: p.rounds, Warmups: p.warmups, Items: runner.List(list)}
}

// items are the runner's items; run measures, or is nil if only the sizes matter.
func items(ms []measurement, run func(context.Context, measurement, runner.Round) (record.Trial, error)) []runner.Item {
	var list []runner.Item
	for _, m := range ms {
		list = append(list, runner.Item{
			ID: m.id(), Title: m.title(), From: m.before, Rounds: m.before + m.rounds, NoWarmup: m.noWarmup, Expect: m.expect(), Demand: m.demand(),
			Measure: runner.Single(0, func(ctx context.Context, t *runner.Turn) (record.Trial, error) { return run(ctx, m, t.Round) }),
		})
	}
	return list
}

// run makes one trial.
func (in Input) run(ctx context.Context, m measurement, r runner.Round) (record.Trial, error) {
	t, err := in.measure(ctx, m, r)
	if ctx.Err() != nil {
		return t, ctx.Err() // the instrument's error has no more detail
	}
	t.From, t.To, t.Quantity = m.from.String(), m.to.String(), m.quantity
	t.CrossCheck = m.crossCheck
	if in.EnvOf != nil {
		t.Env = in.EnvOf(m.from)
	}
	in.complete(&t, m.link, m.look)
	return t, err
}

// complete fills in what only the chain knows about a trial.
func (in Input) complete(t *record.Trial, l plan.Link, look int) {
	t.Chain, t.Link, t.Transport, t.Look = in.Plan.Chain, l.Name, l.Transport, look
	if in.Options.pace().looks > 1 {
		t.Looks = in.Options.pace().looks
	}
	t.Marks = append(t.Marks, in.Marks...)
	if l.Tunnel() {
		t.Marks = append(t.Marks, record.MarkSimulatedHosts)
	}
	t.Runtimes = map[string]string{}
	for _, e := range l.Ends {
		if e.String() != t.From && e.String() != t.To {
			continue
		}
		if f := in.Plan.Function(e.Function); f != nil {
			t.Runtimes[e.String()] = string(f.Runtime)
		}
		if in.Far == nil && guest.Emulated(in.Sandboxes[e.Function].Guest) {
			t.Mark(record.MarkEmulated)
		}
	}
}

func (in Input) measure(ctx context.Context, m measurement, r runner.Round) (record.Trial, error) {
	params := m.params
	if r.Warmup {
		params.Duration = min(params.Duration, shortest)
	}
	params.NextHop = in.nextHop(m)
	tunnelled(m, &params)
	from, err := in.Endpoint(m.from)
	if err != nil {
		return record.Trial{}, err
	}
	to, err := in.Endpoint(m.to)
	if err != nil {
		return record.Trial{}, err
	}
	return m.tool.Run(ctx, from, to, params)
}

// Endpoint is a port of the chain as an instrument sees it.
func (in Input) Endpoint(e plan.End) (instrument.Endpoint, error) {
	if in.Far != nil {
		return in.Far(e)
	}
	at := in.Sandboxes[e.Function]
	if !e.IP.IsValid() && e.Face != chain.FaceNative && e.Face != chain.FaceDPDK {
		return instrument.Endpoint{}, errors.New(e.String() + " has no IP address: give the port one")
	}
	end := instrument.Endpoint{
		Name: e.String(), Place: at.Place(), IP: e.IP.Addr(), MAC: string(e.MAC), MTU: e.MTU,
		Port: e.Port, Guest: at.Guest, Native: e.Face == chain.FaceNative, Ports: sockpath.Dir(at.Ports, e.Port), RuntimeDir: at.RuntimeDir,
	}
	if e.Face != chain.FaceDPDK {
		return end, nil
	}
	var err error
	end.EAL, end.Device, err = in.Device(e)
	end.RuntimeDir = dpdk.RuntimeDir(end.EAL, end.RuntimeDir)
	return end, err
}

// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/trial"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Links measures every link of the plan over its own ports and returns the
// records, also those made before an error. A trial that fails is a record with
// Error; only a cancelled context, a Sink that fails, or a function without a
// sandbox is an error.
func Links(ctx context.Context, in Input) ([]record.Trial, error) {
	ms := matrix(in.Plan, in.Options)
	for _, m := range ms {
		for _, e := range []plan.End{m.from, m.to} {
			if in.Sandboxes[e.Function] == nil {
				return nil, fmt.Errorf("link %s: function %s does not run: `dray up` the chain first", m.link.Name, e.Function)
			}
		}
	}
	trials, err := in.engine(ms).Run(ctx, cells(ms, in.run))
	if err != nil || in.Options.pace().looks < verdict.MaxLooks {
		return trials, err
	}
	more, err := in.prolong(ctx, ms, trials)
	return append(trials, more...), err
}

// engine runs some measurements of the chain.
func (in Input) engine(ms []measurement) *trial.Engine {
	e := engine(in.Options)
	e.Sink, e.Env = in.Sink, in.environment
	if in.Progress != nil {
		e.Progress = func(p trial.Progress) { in.Progress(Progress{Text: text(ms, p), Left: p.Left}) }
	}
	return e
}

func engine(o Options) *trial.Engine {
	p := o.pace()
	return &trial.Engine{Seed: o.Seed, Rounds: p.rounds, Warmups: p.warmups}
}

// cells makes the engine's matrix; run measures, or is nil where only the
// sizes matter.
func cells(ms []measurement, run func(context.Context, measurement, trial.Round) (record.Trial, error)) []trial.Cell {
	var cs []trial.Cell
	for _, m := range ms {
		cs = append(cs, trial.Cell{
			ID: m.id(), Rounds: m.rounds, NoWarmup: m.noWarmup, Expect: m.expect(), Demand: m.demand(),
			Run: func(ctx context.Context, r trial.Round) (record.Trial, error) { return run(ctx, m, r) },
		})
	}
	return cs
}

// run makes one trial and fills in what only the chain knows of it.
func (in Input) run(ctx context.Context, m measurement, r trial.Round) (record.Trial, error) {
	t, err := in.measure(ctx, m, r)
	t.Run, t.Chain, t.Link, t.Transport = in.Run, in.Plan.Chain, m.link.Name, m.link.Transport
	t.From, t.To, t.Quantity = m.from.String(), m.to.String(), m.quantity
	t.CrossCheck = m.crossCheck
	t.Look = m.look
	if in.Options.pace().looks > 1 {
		t.Looks = in.Options.pace().looks
	}
	t.Marks = append(t.Marks, in.Marks...)
	if m.link.Tunnel() {
		t.Marks = append(t.Marks, record.MarkSimulatedHosts)
	}
	t.Runtimes = map[string]string{}
	for _, e := range []plan.End{m.from, m.to} {
		if f := in.Plan.Function(e.Function); f != nil {
			t.Runtimes[e.String()] = string(f.Runtime)
		}
		if guest.Emulated(in.Sandboxes[e.Function].Guest) {
			t.Mark(record.MarkEmulated)
		}
	}
	return t, err
}

func (in Input) measure(ctx context.Context, m measurement, r trial.Round) (record.Trial, error) {
	params := m.params
	if r.Warmup {
		params.Duration = min(params.Duration, shortest)
	}
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
	at := in.Sandboxes[e.Function]
	if !e.IP.IsValid() && e.Face != chain.FaceNative && e.Face != chain.FaceDPDK {
		return instrument.Endpoint{}, errors.New(e.String() + " has no IP address: give the port one")
	}
	end := instrument.Endpoint{
		Name: e.String(), Place: at.Place(), IP: e.IP.Addr(), MAC: string(e.MAC), MTU: e.MTU,
		Port: e.Port, Guest: at.Guest, Native: e.Face == chain.FaceNative, Ports: at.Ports, RuntimeDir: at.RuntimeDir,
	}
	if e.Face != chain.FaceDPDK {
		return end, nil
	}
	var err error
	end.EAL, end.Device, err = in.Device(e)
	end.RuntimeDir = dpdk.RuntimeDir(end.EAL, end.RuntimeDir)
	return end, err
}

// environment is the caller's, with the pinning of the plan.
func (in Input) environment() record.Environment {
	env := in.Env()
	if env.Pinning == nil {
		env.Pinning = map[string][]int{}
		for _, f := range in.Plan.Functions {
			if len(f.CPUs) > 0 {
				env.Pinning[f.Name] = f.CPUs
			}
		}
	}
	return env
}

// Environment is the part of a record's environment that an inventory gives.
// The caller adds Offloads, Qdiscs, the engines that drivers report, and Dray.
func Environment(h inventory.Host) record.Environment {
	env := record.Environment{
		Kernel: h.Kernel, CmdLine: h.CmdLine, OS: h.OS, CPUModel: h.CPUModel,
		CPUs: h.CPUs, Isolated: h.Isolated, Governor: h.Governor, Virtual: h.Virtual, Realtime: h.Realtime,
		HugePages: map[string]int{}, LoadBefore: h.Load1,
	}
	for _, pages := range h.HugePages {
		env.HugePages[pageSize(pages.Size)] = pages.Total
	}
	return env
}

func pageSize(size uint64) string {
	if size >= 1<<30 {
		return fmt.Sprintf("%dGi", size>>30)
	}
	if size >= 1<<20 {
		return fmt.Sprintf("%dMi", size>>20)
	}
	return fmt.Sprintf("%dKi", size>>10)
}

// text is what a user reads before a trial.
func text(ms []measurement, p trial.Progress) string {
	for _, m := range ms {
		if m.id() != p.Cell.ID {
			continue
		}
		round := fmt.Sprintf("round %d of %d", p.Round.Number+1, m.before+p.Rounds)
		if p.Round.Warmup {
			round = "warm-up"
		}
		return fmt.Sprintf("link %s: %s %s → %s, %s, %d s left",
			m.link.Name, m.word, m.from.Function, m.to.Function, round, int(p.Left.Round(time.Second).Seconds()))
	}
	return ""
}

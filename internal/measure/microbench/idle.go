// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/drayage/dray/internal/result/stats"
)

// Idle is the bench of an adaptive receiver that learns when to poll. It is measured
// next to one that polls for a fixed time before each sleep, in turns.
type Idle struct {
	Probe    string // dray-probe
	Rounds   int
	Out, Log io.Writer // tables; progress
}

// groupIdle is the group of its figures.
const groupIdle = "adaptive mode: polling as learned, next to 50 us before each sleep"

// starvedFrom is the percentage of time without a CPU from which an end's p99 may be
// the machine's.
const starvedFrom = 0.9

// idlePackets are sent for each rate of a busy stream.
const idlePackets = 4_000_000

// The kinds of arrivals of dray-probe.
var arrivals = []string{"regular", "random", "bursts of 32"}

// loads are packets per second, with the CPU time that a receiver may use at regular
// arrivals: % of a core, 0 for no target.
var loads = []struct {
	pps    int
	name   string
	target float64
}{{1000, "1 k/s", 5}, {10_000, "10 k/s", 20}, {100_000, "100 k/s", 0}}

// policies are the ports of dray-probe, as their numbers there.
var policies = []string{"learned", "fixed"}

// Run measures everything, prints it, and returns the figures.
func (b Idle) Run(ctx context.Context) (*Figures, error) {
	s := &Figures{}
	if err := s.LookAtMachine(ctx, 2); err != nil {
		return nil, err
	}
	if err := b.measure(ctx, s); err != nil {
		return nil, err
	}
	s.Print(b.Out)
	s.PrintTargets(b.Out)
	return s, nil
}

// measure measures all loads in every round, and the two policies in turns.
func (b Idle) measure(ctx context.Context, s *Figures) (err error) {
	p, err := startProbe(ctx, b.Probe)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	b.list(s)
	for round := range b.Rounds {
		fmt.Fprintf(b.Log, "adaptive mode: round %d of %d\n", round+1, b.Rounds)
		for kind := range arrivals {
			for load := range loads {
				if err := b.load(s, p, round+1, kind, load); err != nil {
					return err
				}
			}
		}
		if err := b.busy(s, p, round+1); err != nil {
			return err
		}
	}
	b.judge(s)
	return nil
}

// idleStarved finds the rounds of a load in which an end was starved of CPU: 1, or 0.
func idleStarved(s *Figures, kind, load int) *Figure {
	f := s.Figure(groupIdle, fmt.Sprintf("%s, %s, starved", arrivals[kind], loads[load].name), "")
	f.hidden = true
	return f
}

// list makes the figures, in the order of the table.
func (b Idle) list(s *Figures) {
	for kind := range arrivals {
		for load := range loads {
			for what := range idleFigures {
				idleFigure(s, what, kind, load, 1)
				idleFigure(s, what, kind, load, 0)
			}
		}
	}
}

// inTurns calls f for both policies; which is first changes from round to round.
func inTurns(round int, f func(policy int) error) error {
	first := round % len(policies)
	return errors.Join(f(first), f(1-first))
}

// load measures a load with both policies.
func (b Idle) load(s *Figures, p *probe, round, kind, load int) error {
	ms := 200
	if loads[load].pps < 10_000 {
		ms = 500 // for a p99
	}
	var samples [2]Sample
	err := inTurns(round, func(policy int) (err error) {
		samples[policy], err = p.ask(round, "adaptive %d %d %d %d", policy, kind, loads[load].pps, ms)
		return err
	})
	if err != nil {
		return err
	}
	starved := 0.0
	if slices.ContainsFunc(samples[:], func(s Sample) bool { return s.StarvedPercent > starvedFrom }) {
		starved = 1
	}
	idleStarved(s, kind, load).Add(starved)
	for policy, sample := range samples {
		for i, value := range []float64{sample.CPUPercent, quantile(sample.Values, 0.5), quantile(sample.Values, 0.99), sample.SendNS} {
			idleFigure(s, i, kind, load, policy).Add(value)
		}
	}
	return nil
}

// quantile is the q-quantile of values; 0 if there are none.
func quantile(values []float64, q float64) float64 {
	e, err := stats.Quantile(values, q)
	if err != nil {
		return 0
	}
	return e.Value
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// idleFigures are measured of each load and policy.
var idleFigures = []struct{ name, unit string }{
	{"CPU of the receiver", "% of a core"}, {"one-way p50", "ns"}, {idleP99, "ns"}, {"time of the sender for a packet", "ns"},
}

const idleP99 = "one-way p99"

// idleFigure finds a figure of a load with a policy.
func idleFigure(s *Figures, what, kind, load, policy int) *Figure {
	f := idleFigures[what]
	return s.Figure(groupIdle, fmt.Sprintf("%s, %s, %s, %s", arrivals[kind], loads[load].name, f.name, policies[policy]), f.unit)
}

const busyName = "a stream without gaps, "

// busy measures a stream that leaves nothing to learn: learning must cost nothing.
func (b Idle) busy(s *Figures, p *probe, round int) error {
	return inTurns(round, func(policy int) error {
		sample, err := p.ask(round, "adaptive-rate %d %d", policy, idlePackets)
		if err != nil {
			return err
		}
		if len(sample.Values) == 0 {
			return fmt.Errorf("%s: adaptive-rate: no value", p.name)
		}
		s.Figure(groupIdle, busyName+policies[policy], "packets/s").Add(median(sample.Values))
		return nil
	})
}

// judge sets ratios, targets and marks.
func (b Idle) judge(s *Figures) {
	for kind := range arrivals {
		for load, l := range loads {
			for what, f := range idleFigures {
				fixed := idleFigure(s, what, kind, load, 1)
				learned := idleFigure(s, what, kind, load, 0).Of(fixed)
				if f.name == idleP99 {
					learned.AtMost(1, fixed, "that of fixed polling")
				}
			}
			cpu := idleFigure(s, 0, kind, load, 0)
			if n := sum(idleStarved(s, kind, load).samples); n > 0 {
				cpu.Mark(fmt.Sprintf("in %g of %d rounds an end was starved of CPU", n, b.Rounds))
			}
			if kind == 0 && l.target > 0 {
				cpu.Mark(fmt.Sprintf("target under %g: %s", l.target, reachedWord(cpu.Value() < l.target)))
			}
		}
	}
	fixed := s.Figure(groupIdle, busyName+policies[1], "packets/s")
	s.Figure(groupIdle, busyName+policies[0], "packets/s").Of(fixed)
}

// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"fmt"
)

// starvedFrom is the percentage of time without a CPU from which a receiver's p99
// may be the machine's.
const starvedFrom = 0.9

// idleTarget is how many percent of a core an idle receiver may use.
const idleTarget = 1

// loads are the rates of adaptive mode, in packets per second.
var loads = []struct {
	pps  int
	name string
}{{0, "idle"}, {1000, "1 k packets/s"}, {10_000, "10 k packets/s"}, {100_000, "100 k packets/s"}, {1_000_000, "1 M packets/s"}}

// adaptive measures CPU use and latency at several loads, and the first packet after a sleep.
func (b Libdray) adaptive(ctx context.Context, s *Figures) (err error) {
	p, err := startProbe(ctx, b.Probe)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	ms := 2000
	if b.Quick {
		ms = 500
	}
	for _, load := range loads {
		if err := b.adaptiveLoad(s, p, load.pps, load.name, ms); err != nil {
			return err
		}
	}
	var socket *Figure
	for kind, name := range []string{"bare futex wake-up", "UNIX datagram socket", "libdray"} {
		sample, err := p.ask(1, "wake %d %d", kind, wakeUps)
		if err != nil {
			return err
		}
		f := s.Figure(groupMode, "first packet after idle: "+name+", p50", "ns")
		f.Quantile(sample.Values, 0.5)
		if name == "libdray" {
			f.Of(socket)
		}
		socket = f // the one before libdray
	}
	return nil
}

func (b Libdray) adaptiveLoad(s *Figures, p *probe, pps int, name string, ms int) error {
	fmt.Fprintf(b.Log, "adaptive mode: %d packets/s\n", pps)
	used, err := p.ask(1, "adaptive %d %d", pps, ms)
	if err != nil {
		return err
	}
	cpu := s.Figure(groupMode, "CPU of the receiver, "+name, "% of a core")
	cpu.Add(used.CPUPercent)
	if pps == 0 {
		cpu.Mark(fmt.Sprintf("target %d: %s", idleTarget, reachedWord(used.CPUPercent < idleTarget)))
		return nil
	}
	p99 := s.Figure(groupMode, "one-way p99, "+name, "ns")
	p99.Quantile(used.Values, 0.99)
	s.Figure(groupMode, "receiver ready, but without a CPU, "+name, "% of the time").Add(used.StarvedPercent)
	if used.StarvedPercent > starvedFrom {
		p99.Mark("the receiver was starved of CPU")
	}
	return nil
}

func reachedWord(reached bool) string {
	if reached {
		return "reached"
	}
	return "NOT reached"
}

// setUps measures the time from dray_open to a link's first packet.
func (b Libdray) setUps(ctx context.Context, s *Figures) (err error) {
	n := 500
	if b.Quick {
		n = 100
	}
	fmt.Fprintf(b.Log, "set-up of %d links\n", n)
	p, err := startProbe(ctx, b.Probe) // it forks: no other case's thread may exist
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	sample, err := p.ask(1, "set-up %d", n)
	if err != nil {
		return err
	}
	s.Figure(groupSetUp, "p50", "ns").Quantile(sample.Values, 0.5)
	s.Figure(groupSetUp, "p99", "ns").Quantile(sample.Values, 0.99)
	return nil
}

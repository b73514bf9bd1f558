// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"fmt"
)

// idleTarget is how many percent of a core an idle receiver may use.
const idleTarget = 1

// adaptive measures CPU use and latency at several loads.
func (b Libdray) adaptive(ctx context.Context, s *Figures) error {
	return Idle{Probe: b.Probe, Rounds: b.Rounds, Log: b.Log}.measure(ctx, s)
}

// asleep measures the CPU use of a port without packets, and the first packet after a sleep.
func (b Libdray) asleep(ctx context.Context, s *Figures) (err error) {
	p, err := startProbe(ctx, b.Probe)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	idle, err := p.ask(1, "adaptive 0 0 0 1000")
	if err != nil {
		return err
	}
	cpu := s.Figure(groupMode, "CPU of the receiver without packets", "% of a core")
	cpu.Add(idle.CPUPercent)
	cpu.Mark(fmt.Sprintf("target %d: %s", idleTarget, reachedWord(idle.CPUPercent < idleTarget)))
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

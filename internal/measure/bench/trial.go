// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
)

// trial offers one load once.
func (s *setup) trial(ctx context.Context, load matrix.Load) (record.Trial, error) {
	if load.Searched() {
		return s.search(ctx, load)
	}
	if load.OfPDR {
		return s.underLoad(ctx, load)
	}
	rate, _ := packetRate(load, s.visit.config.Size)
	return s.offer(ctx, rate, time.Duration(s.runner.Run.Matrix.Trial))
}

// offer sends at a rate (0: as fast as the port accepts), and meters the chain's
// resource use meanwhile.
func (s *setup) offer(ctx context.Context, rate uint64, d time.Duration) (record.Trial, error) {
	from, to, err := s.ends()
	if err != nil {
		return record.Trial{}, err
	}
	frame, err := frameBytes(s.visit.config.Size)
	if err != nil {
		return record.Trial{}, err
	}
	p := instrument.Params{Duration: d, Frame: frame, PacketRate: rate, Batch: s.runner.Run.Matrix.Batch, Encap: around(s.visit.config)}
	// A receiver that polls on the only CPU would starve its sender.
	if several := len(s.runner.Inventory.Host.CPUs) > 1; several && s.visit.config.Face != string(chain.FaceNetdev) {
		p.Poll, p.Busy = true, rate == 0
	}
	energy, noEnergy := host.NewEnergyMeter()
	watch := startSampling(s.meter, energy)
	measure := generator.Run
	if s.oneThread() {
		measure = generator.Loop
	}
	t, err := measure(ctx, from, to, p)
	samples, watchErr := watch.stop()
	if err = errors.Join(err, watchErr); err != nil || t.Bench == nil || t.Bench.Span == nil {
		return t, err
	}
	t.Bench.Cost = samples.cost(t.Bench.Span.Start, t.Bench.Span.End)
	t.Bench.Cost.Idle = s.idle
	if noEnergy != nil {
		t.Bench.Cost.NoPower = host.ProbeItem("energy", noEnergy).Reason
	}
	t.Env.BusyDuring, t.Env.Stolen = samples.machine()
	return t, nil
}

// ends are the two ports as the instrument sees them.
func (s *setup) ends() (from, to instrument.Endpoint, err error) {
	in := verify.Input{Plan: s.live.State.Plan, Sandboxes: s.live.State.Sandboxes, Device: s.live.Device}
	for _, l := range s.live.State.Plan.Links {
		for _, e := range l.Ends {
			switch e.Port {
			case senderPort:
				from, err = in.Endpoint(e)
				if matrix.VNF(s.visit.config.VNF).Workers() > 0 {
					to = from // a load balancer's workers return packets
				}
			case sinkPort:
				to, err = in.Endpoint(e)
			}
			if err != nil {
				return from, to, err
			}
		}
	}
	if from.Name == "" || to.Name == "" {
		return from, to, errors.New("the plan lacks two ends to measure between")
	}
	if !s.oneThread() || from.Device == "" {
		return from, to, nil
	}
	eal, names, err := s.live.Devices(sender)
	from.EAL, to.EAL = eal, eal
	from.Device, to.Device = names[from.Port], names[to.Port]
	if s.shape == vnf {
		to.MAC = inMAC // the forwarder's
		if user := tunnels[matrix.VNF(s.visit.config.VNF)].user; user.IsValid() {
			from.IP = user
		}
	}
	return from, to, err
}

// oneThread reports whether one thread sends and receives.
func (s *setup) oneThread() bool { return s.shape == loop || s.shape == vnf }

// sampleEvery is how often resource use is read during a trial.
const sampleEvery = 20 * time.Millisecond

// sample is the resource use up to a time.
type sample struct {
	host.Usage
	machine host.CPUTimes
	joules  float64 // of the processor packages; 0 without their counters
}

type samples []sample

// sampling reads in the background.
type sampling struct {
	end  chan struct{}
	done chan struct{}
	got  samples
	err  error
}

// startSampling samples until stop; energy is nil if it cannot be measured.
func startSampling(m *host.Meter, energy *host.EnergyMeter) *sampling {
	w := &sampling{end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for last := false; ; {
			if w.err = w.read(m, energy); w.err != nil || last {
				return
			}
			select {
			case <-tick.C:
			case <-w.end:
				last = true
			}
		}
	}()
	return w
}

func (w *sampling) read(m *host.Meter, energy *host.EnergyMeter) error {
	machine, err := host.ReadCPUTimes()
	if err != nil {
		return err
	}
	u, err := m.Read()
	if err != nil {
		return err
	}
	s := sample{Usage: u, machine: machine}
	if energy != nil {
		if s.joules, err = energy.Read(); err != nil {
			return err
		}
	}
	w.got = append(w.got, s)
	return nil
}

func (w *sampling) stop() (samples, error) {
	close(w.end)
	<-w.done
	return w.got, w.err
}

// cost is the use between two CLOCK_MONOTONIC times, interpolated between
// samples.
func (s samples) cost(from, to time.Duration) *record.Cost {
	c := &record.Cost{}
	for _, one := range s {
		c.Memory = max(c.Memory, one.Memory)
	}
	a, b := s.at(from), s.at(to)
	if b.at <= a.at {
		return c
	}
	c.Cores = max(0, (b.cpu-a.cpu)/(b.at-a.at))
	c.Power = max(0, (b.joules-a.joules)/time.Duration(b.at-a.at).Seconds())
	if total := b.total - a.total; total > 0 {
		c.Machine = min(1, max(0, (b.busy-a.busy)/total))
	}
	return c
}

// point is a sample as numbers: ns, clock ticks of all CPUs, and J.
type point struct{ at, cpu, busy, total, joules float64 }

func (s sample) point() point {
	return point{float64(s.At), float64(s.CPU), float64(s.machine.Total) - float64(s.machine.Idle), float64(s.machine.Total), s.joules}
}

// at is the use at a time, linearly interpolated between samples; outside them it
// is the first or the last sample.
func (s samples) at(t time.Duration) point {
	if len(s) == 0 {
		return point{}
	}
	before := s[0].point()
	for _, one := range s {
		p := one.point()
		if p.at < float64(t) {
			before = p
			continue
		}
		share := 0.0
		if p.at > before.at {
			share = max(0, (float64(t)-before.at)/(p.at-before.at))
		}
		mix := func(a, b float64) float64 { return a + share*(b-a) }
		return point{mix(before.at, p.at), mix(before.cpu, p.cpu), mix(before.busy, p.busy), mix(before.total, p.total), mix(before.joules, p.joules)}
	}
	return before
}

// machine is the machine's busy and stolen share over all samples.
func (s samples) machine() (busy, stolen float64) {
	if len(s) < 2 {
		return 0, 0
	}
	return s[len(s)-1].machine.Since(s[0].machine)
}

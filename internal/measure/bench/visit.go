// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/trial"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

const (
	// watched is how long the machine is looked at before a configuration comes up,
	// and the configuration before it is offered anything: several clock ticks of 10 ms.
	watched = 100 * time.Millisecond
	// settled is how long a configuration is left alone that is new, and the machine
	// after one that went.
	settled = 50 * time.Millisecond
	// patience is how long a trial may take to fail before its configuration is
	// given up for the round.
	patience = 5 * time.Second
	// downTime bounds the removal of a configuration, also after an interrupt.
	downTime = 2 * time.Minute
)

// visit brings a configuration up, offers it its loads, and takes it down.
func (r *Runner) visit(ctx context.Context, v visit) error {
	if v.config.Transport == "" {
		return r.ceiling(ctx, v)
	}
	// What came down just before may still keep the kernel busy.
	if err := host.Sleep(ctx, settled); err != nil {
		return err
	}
	at, err := r.look(ctx)
	if err != nil {
		return err
	}
	s, err := r.open(ctx, v, at)
	for _, load := range v.loads {
		if ctx.Err() != nil {
			break
		}
		t, began := record.Trial{}, time.Now()
		failed := err
		if failed == nil {
			t, failed = s.trial(ctx, load)
		}
		if failed != nil && !errors.Is(failed, errNoRate) && time.Since(began) > patience {
			err = failed // a time-out, which the other loads would only wait for again
		}
		if ctx.Err() != nil {
			break // what was interrupted is measured again
		}
		t = s.complete(t, load, failed)
		s.note(t)
		if writeErr := r.write(t); writeErr != nil {
			return errors.Join(writeErr, s.close(ctx))
		}
	}
	return errors.Join(ctx.Err(), s.close(ctx))
}

// moment is the machine before a configuration comes up.
type moment struct {
	busy  float64       // share of all CPU time that was in use
	limit *record.Limit // nil: the run says why
}

// look sees what else the machine does, and what it can do at best just now.
func (r *Runner) look(ctx context.Context) (moment, error) {
	begin, err := host.ReadCPUTimes()
	if err != nil {
		return moment{}, fmt.Errorf("load of the machine: %w", err)
	}
	if err := host.Sleep(ctx, watched); err != nil {
		return moment{}, err
	}
	end, err := host.ReadCPUTimes()
	if err != nil {
		return moment{}, fmt.Errorf("load of the machine: %w", err)
	}
	m := moment{}
	m.busy, _ = end.Since(begin)
	if m.limit, err = instrument.PhysicalLimit(ctx); err != nil {
		r.Run.NoLimit = err.Error()
	}
	return m, ctx.Err()
}

// site is a configuration that is up. It is never nil, also beside an error.
type site struct {
	runner *Runner
	visit  visit
	moment moment
	shape  shape
	live   *node.Live // nil: it could not be brought up
	stop   func()     // ends the functions' commands; nil: none runs
	meter  *host.Meter
	idle   float64 // CPUs that it keeps busy without traffic
	pdr    float64 // packets/s, found in this round; 0: not
}

// site is a configuration that is not up yet, with what earlier sessions found.
func (r *Runner) site(v visit, at moment) *site {
	s := &site{runner: r, visit: v, moment: at, shape: shapeOf(r.Inventory, v.config)}
	for _, t := range r.Earlier {
		s.note(t)
	}
	return s
}

// open brings a configuration up.
func (r *Runner) open(ctx context.Context, v visit, at moment) (*site, error) {
	s := r.site(v, at)
	c, text, p, err := prepare(&r.Run.Matrix, r.Inventory, v.config)
	if err != nil {
		return s, err
	}
	if s.live, err = r.Node.Create(ctx, "bench", c, text, p); err != nil {
		return s, err
	}
	if s.meter, err = host.NewMeter(s.live.Cgroup()); err != nil {
		return s, err
	}
	if s.shape == vnf {
		if err := s.startFunctions(ctx); err != nil {
			return s, err
		}
	}
	if err := host.Sleep(ctx, settled); err != nil {
		return s, err
	}
	before, err := s.meter.Read()
	if err != nil {
		return s, err
	}
	if err := host.Sleep(ctx, watched); err != nil {
		return s, err
	}
	after, err := s.meter.Read()
	s.idle = cores(before, after)
	return s, err
}

// vnfStarts is how long a VNF must have run to count as started: longer than EAL
// takes to find that something is wrong.
const vnfStarts = 1500 * time.Millisecond

// startFunctions runs the commands of the chain until the site closes.
func (s *site) startFunctions(ctx context.Context) error {
	supervisor, err := s.live.Supervise()
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Run(running)
	}()
	s.stop = func() {
		stop()
		<-done
	}
	err = supervisor.Settled(ctx, vnfStarts)
	if ready := s.readiness(); err == nil && ready != nil {
		err = awaitReady(ctx, s.live.LogFile(through), ready, func(ctx context.Context) error { return supervisor.Settled(ctx, 0) })
	}
	if err != nil {
		if _, logErr := os.Stat(s.live.LogFile(through)); logErr == nil {
			err = fmt.Errorf("%w; its last output:\n%s", err, s.live.LogTail(through, 5))
		}
		return err
	}
	return nil
}

func cores(from, to host.Usage) float64 {
	if to.At <= from.At {
		return 0
	}
	return max(0, float64(to.CPU-from.CPU)/float64(to.At-from.At))
}

func (s *site) close(ctx context.Context) error {
	if s.live == nil {
		return nil
	}
	if s.stop != nil {
		s.stop()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTime)
	defer cancel()
	return s.live.Remove(ctx)
}

// complete fills in what every trial of a configuration has, also one that failed.
func (s *site) complete(t record.Trial, load chain.BenchLoad, failed error) record.Trial {
	v := s.visit
	t.ID, t.Round, t.Quantity = v.id(load), v.round, record.QFrames
	t.Chain, t.Link, t.Transport = chainName(v.config), linkName, v.config.Transport
	ends := string(generatorRuntime(v.config))
	t.Runtimes = map[string]string{t.From: ends, t.To: ends}
	if t.Start.IsZero() {
		t.Start = time.Now()
	}
	if failed != nil {
		t.Error = failed.Error()
	}
	if t.Bench == nil {
		t.Bench = &record.Bench{}
	}
	t.Bench.Config, t.Bench.Load, t.Bench.Limit = v.config, load.String(), s.moment.limit
	during := t.Env
	t.Env = s.environment()
	t.Env.Stolen, t.Env.BusyDuring = during.Stolen, during.BusyDuring
	t.Mark(trial.Preflight(t.Env, s.demand(load), s.moment.busy)...)
	if s.oneThread() && len(t.Env.CPUs) > 0 && len(t.Env.CPUs) < wantedCPUs {
		t.Mark(record.MarkFewCPUs)
	}
	if s.live != nil && Emulated(s.live) {
		t.Mark(record.MarkEmulated)
	}
	return t
}

// environment is the machine's, with the pinning of the plan.
func (s *site) environment() record.Environment {
	env := s.runner.Env(s.live)
	if s.live != nil && env.Pinning == nil {
		env.Pinning = map[string][]int{}
		for _, f := range s.live.State.Plan.Functions {
			if len(f.CPUs) > 0 {
				env.Pinning[f.Name] = f.CPUs
			}
		}
	}
	return env
}

// wantedCPUs are for sender, receiver and what is between them.
const wantedCPUs = 3

// busyRate is about how many packets per second keep a CPU busy at either end of
// a socket.
const busyRate = 150_000

// demand is the threads that want a CPU all the time: what the configuration
// keeps busy without traffic, and the two ends of a load that is large enough.
func (s *site) demand(load chain.BenchLoad) trial.Demand {
	d := trial.Demand{"switch": int(math.Round(s.idle))}
	rate, ok := packetRate(load, s.visit.config.Size)
	if load.OfPDR {
		share, err := s.shareOf(load)
		rate, ok = share, err == nil
	}
	if ok && rate <= busyRate && s.visit.config.Face != string(chain.FaceDPDK) {
		return d
	}
	d[sender]++
	switch s.shape {
	case pair:
		d[receiver]++
	case alone:
		d[sender]++
	}
	return d
}

// packetRate is a stated load in packets per second; ok is false for the most
// that passes, and for a share of it.
func packetRate(load chain.BenchLoad, size string) (rate uint64, ok bool) {
	if !load.Stated() {
		return 0, false
	}
	if load.PacketRate > 0 {
		return uint64(load.PacketRate), true
	}
	var s chain.FrameSize
	if err := s.UnmarshalText([]byte(size)); err != nil {
		return 0, false
	}
	const fcs = 4
	return max(1, uint64(math.Round(float64(load.Bitrate)/8/(s.Bytes()-fcs)))), true
}

// ceiling measures the generator alone.
func (r *Runner) ceiling(ctx context.Context, v visit) error {
	if r.Done[v.ceilingID()] {
		return nil
	}
	frame, err := frameBytes(v.config.Size)
	if err != nil {
		return err
	}
	t, err := generator.Ceiling(ctx, v.config.Face == string(chain.FaceDPDK), frame, ceilingTime)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		t.Error = err.Error()
	}
	if t.Bench == nil {
		t.Bench = &record.Bench{}
	}
	t.Bench.Config, t.Bench.Load = v.config, chain.LoadMax
	t.ID, t.Round, t.Quantity, t.Env = v.ceilingID(), v.round, record.QCeiling, r.Env(nil)
	return r.write(t)
}

// frameBytes is a frame's length without FCS, as the generator counts; 0: IMIX.
func frameBytes(size string) (int, error) {
	var s chain.FrameSize
	if err := s.UnmarshalText([]byte(size)); err != nil || s == chain.IMIX {
		return 0, err
	}
	const fcs = 4
	return int(s) - fcs, nil
}

// generator measures ports of every face.
var generator = instrument.Draygen{Quantity: record.QFrames}

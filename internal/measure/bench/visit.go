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
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
)

const (
	// idleFor is how long a configuration is watched before any load: several clock
	// ticks of 10 ms.
	idleFor = 100 * time.Millisecond
	// settled is a pause after a configuration comes up, and for the machine after
	// one is removed.
	settled = 50 * time.Millisecond
	// patience is how long a trial may take to fail before its configuration is
	// abandoned for the round.
	patience = 5 * time.Second
	// downTime bounds the removal of a configuration, even after an interrupt.
	downTime = 2 * time.Minute
)

// visit brings a configuration up, offers it its loads, and takes it down.
func (r *Runner) visit(ctx context.Context, turn *runner.Turn, v visit) error {
	s, err := r.open(ctx, turn, v)
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
			err = failed // a time-out, which the other loads would only repeat
		}
		if ctx.Err() != nil {
			break // a resumed run measures it again
		}
		t = s.complete(t, load)
		if writeErr := turn.Record(t, s.demand(load), failed); writeErr != nil {
			return errors.Join(writeErr, s.close(ctx))
		}
		if failed == nil {
			s.note(t)
		}
	}
	return errors.Join(ctx.Err(), s.close(ctx))
}

// setup is a configuration that is up. It is never nil, even on error.
type setup struct {
	runner *Runner
	turn   *runner.Turn
	visit  visit
	limit  *record.Limit // the machine's best; nil: the run says why
	shape  shape
	live   *node.Live // nil: it did not come up
	stop   func()     // ends the functions' commands; nil: none
	meter  *host.Meter
	idle   float64 // CPUs busy without traffic
	pdr    float64 // packets/s, found in this round; 0: none
}

// setup is a configuration that is not up yet, with earlier processes' results.
func (r *Runner) setup(v visit) *setup {
	s := &setup{runner: r, visit: v, shape: shapeOf(r.Inventory, v.config)}
	for _, t := range r.Earlier {
		s.note(t)
	}
	return s
}

// open brings a configuration up, after measuring the machine's limits.
func (r *Runner) open(ctx context.Context, turn *runner.Turn, v visit) (*setup, error) {
	s := r.setup(v)
	s.turn = turn
	limit, err := instrument.PhysicalLimit(ctx)
	if s.limit = limit; err != nil {
		r.Run.NoLimit = err.Error()
	}
	if err := ctx.Err(); err != nil {
		return s, err
	}
	c, text, p, err := prepare(&r.Run.Matrix, r.Inventory, v.config)
	if err != nil {
		return s, err
	}
	if s.live, err = r.Create(ctx, c, text, p); err != nil {
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
	if err := host.Sleep(ctx, idleFor); err != nil {
		return s, err
	}
	after, err := s.meter.Read()
	s.idle = cores(before, after)
	return s, err
}

// startFunctions runs the chain's commands until it is taken down.
func (s *setup) startFunctions(ctx context.Context) error {
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
	ended := func(ctx context.Context) error { return supervisor.Settled(ctx, 0) }
	err = awaitReady(ctx, s.live.LogFile(through), s.readiness(), ended)
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

func (s *setup) close(ctx context.Context) error {
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

// complete fills in the common fields of a configuration's trials, even failed ones.
func (s *setup) complete(t record.Trial, load matrix.Load) record.Trial {
	v := s.visit
	t.ID, t.Quantity = v.id(load), record.QFrames
	t.Chain, t.Link, t.Transport = chainName(v.config), linkName, v.config.Transport
	ends := string(generatorRuntime(v.config))
	t.Runtimes = map[string]string{t.From: ends, t.To: ends}
	if t.Bench == nil {
		t.Bench = &record.Bench{}
	}
	t.Bench.Config, t.Bench.Load, t.Bench.Limit = v.config, load.String(), s.limit
	during := t.Env
	t.Env = s.runner.Env(s.live)
	t.Env.Stolen, t.Env.BusyDuring = during.Stolen, during.BusyDuring
	if s.oneThread() && len(t.Env.CPUs) > 0 && len(t.Env.CPUs) < wantedCPUs {
		t.Mark(record.MarkFewCPUs)
	}
	if s.live != nil && Emulated(s.live) {
		t.Mark(record.MarkEmulated)
	}
	return t
}

// wantedCPUs are for sender, receiver and the VNF or switch between them.
const wantedCPUs = 3

// busyRate is the approximate packet rate, per second, that keeps a CPU busy at
// either end of a socket.
const busyRate = 150_000

// demand is the threads that always want a CPU: the configuration's idle load,
// and both ends of a large enough load.
func (s *setup) demand(load matrix.Load) runner.Demand {
	d := runner.Demand{"switch": int(math.Round(s.idle))}
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

// packetRate is a stated load in packets per second; ok is false for the highest
// passing rate, and for a share of it.
func packetRate(load matrix.Load, size string) (rate uint64, ok bool) {
	if !load.Stated() {
		return 0, false
	}
	if load.PacketRate > 0 {
		return uint64(load.PacketRate), true
	}
	var s matrix.FrameSize
	if err := s.UnmarshalText([]byte(size)); err != nil {
		return 0, false
	}
	const fcs = 4
	return max(1, uint64(math.Round(float64(load.Bitrate)/8/(s.Bytes()-fcs)))), true
}

// ceiling measures only the generator.
func ceiling(ctx context.Context, v visit) (record.Trial, error) {
	frame, err := frameBytes(v.config.Size)
	if err != nil {
		return record.Trial{}, err
	}
	t, err := generator.Ceiling(ctx, v.config.Face == string(chain.FaceDPDK), frame, ceilingTime)
	if t.Bench == nil {
		t.Bench = &record.Bench{}
	}
	t.Bench.Config, t.Bench.Load, t.Quantity = v.config, matrix.LoadMax, record.QCeiling
	return t, err
}

// frameBytes is a frame's length without FCS, as the generator counts; 0: IMIX.
func frameBytes(size string) (int, error) {
	var s matrix.FrameSize
	if err := s.UnmarshalText([]byte(size)); err != nil || s == matrix.IMIX {
		return 0, err
	}
	const fcs = 4
	return int(s) - fcs, nil
}

// generator measures ports of every face.
var generator = instrument.Draygen{Quantity: record.QFrames}

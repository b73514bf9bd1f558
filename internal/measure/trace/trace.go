// SPDX-License-Identifier: Apache-2.0

// Package trace measures where the packets of a path spend their time, and where they get
// lost: in which link, and in which function. It observes every port on the way, and joins
// what is seen of the same packet.
package trace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/units"
)

// Options are how to trace.
type Options struct {
	Back     bool           // from the path's last port to its first
	Load     *units.Bitrate // payload; 0: idleRate of small packets, as a path's own load of 0; nil: the path's
	Duration time.Duration  // of a trial
	Rounds   int            // each is one trial that is observed, and one that is not
}

const (
	// idleRate is how many small packets a second make an idle path.
	idleRate = 1000
	// smallFrame is the smallest with draygen's whole header, bytes without FCS, over IPv6.
	smallFrame = 118
	// leastPackets is how many packets a trial must send. A slower generator may end long after
	// the trial, or never.
	leastPackets = 2
	// sampleRate is how many packets a second each tap takes at most, if it can choose.
	sampleRate = 10_000
	// tail is how long after the last packet was sent taps go on.
	tail = 100 * time.Millisecond
	// tapPatience is how long taps may take to open once the generator has its ports.
	tapPatience = 30 * time.Second
	// restWatch is how long functions are watched without traffic.
	restWatch = 500 * time.Millisecond
)

// Tracer traces one path of a running chain.
type Tracer struct {
	Live    *node.Live
	Input   verify.Input // of the chain, to reach its ports
	Path    *plan.Path
	Options Options
	Say     func(text string)

	way    verify.Way
	points []point
	params instrument.Params
	keep   sampling
}

// Run traces, and returns what was seen in each trial. If a trial fails, or ctx ends, it returns
// the finished rounds with the error; nil if nothing was begun.
func (t *Tracer) Run(ctx context.Context) (*Trace, error) {
	t.points = points(t.Live.State.Plan, t.Path, t.Options.Back)
	var err error
	if t.way, err = t.Input.Way(ctx, t.Path.Name, t.Options.Back); err != nil {
		return nil, err
	}
	if err := t.size(); err != nil {
		return nil, err
	}
	out := &Trace{tracer: t, stages: stages(t.points)}
	if len(out.stages) == 0 {
		return nil, fmt.Errorf("path %s: none of its ports can be observed: %s", t.Path.Name, t.points[0].why)
	}
	if out.rest, err = t.watch(func() error { return host.Sleep(ctx, restWatch) }); err != nil {
		return nil, err
	}
	for round := range t.Options.Rounds {
		if err = t.round(ctx, out, round); err != nil {
			break
		}
		out.rounds++
	}
	out.cut()
	statuses, _, failed := t.Live.Status()
	out.stopped = stopped(t.Path.Through(), statuses)
	return out, errors.Join(err, failed)
}

// round is one trial that is observed and one that is not, in turns, so that what changes slowly
// does not count for one of the two.
func (t *Tracer) round(ctx context.Context, out *Trace, round int) error {
	t.Say(fmt.Sprintf("Tracing path %s, round %d of %d", t.Path.Name, round+1, t.Options.Rounds))
	for i := range 2 {
		if err := t.trial(ctx, out, (round+i)%2 == 0); err != nil {
			return err
		}
	}
	return nil
}

// LoadError says that a trial would send too few packets.
type LoadError struct {
	Path  string
	Load  units.Bitrate // payload
	Frame int           // payload of a packet, bytes
	Trial time.Duration
	Least units.Bitrate // the lowest load that does
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("path %s: a load of %v sends under %d packets of %d B in a trial of %v: give --load %v or more, or a longer --duration",
		e.Path, e.Load, leastPackets, e.Frame, e.Trial, e.Least)
}

// enough is an error if a trial sends too few packets.
func (t *Tracer) enough() error {
	bits := float64(8 * t.payload())
	seconds := t.Options.Duration.Seconds()
	if float64(t.params.Bitrate)*seconds >= leastPackets*bits {
		return nil
	}
	least := leastPackets * bits / seconds
	step := math.Pow10(max(0, int(math.Log10(least))-1)) // two digits
	return &LoadError{t.Path.Name, units.Bitrate(t.params.Bitrate), t.payload(), t.Options.Duration, units.Bitrate(math.Ceil(least/step) * step)}
}

// size is what to send.
func (t *Tracer) size() error {
	t.params = instrument.Params{Duration: t.Options.Duration, NextHop: t.way.NextHop, Encap: t.way.Encap}
	frame := min(t.way.From.MTU, t.way.To.MTU) + ethernet - t.tunnelled()
	load := t.Path.Load
	if t.Options.Load != nil {
		load = *t.Options.Load
	}
	if t.params.Bitrate = uint64(load); load == 0 {
		frame = smallFrame + t.around()
		t.params.Bitrate = idleRate * 8 * uint64(frame-t.headers())
	}
	t.params.Frame = frame
	t.keep = samplingOf(float64(t.params.Bitrate)/float64(8*t.payload()), sampleRate)
	return t.enough()
}

const (
	ethernet = 14
	ip4, ip6 = 20, 40
	udp      = 8
)

func (t *Tracer) headers() int {
	if ip := t.way.To.IP; ip.Is6() && !ip.Is4In6() {
		return ethernet + ip6 + udp
	}
	return ethernet + ip4 + udp + t.around()
}

// around are the bytes of the tunnel in which packets are sent.
func (t *Tracer) around() int {
	if t.way.Encap == nil {
		return 0
	}
	return t.way.Encap.Headers
}

// tunnelled are the bytes of the tunnel into which a function puts packets that are sent
// without.
func (t *Tracer) tunnelled() int {
	if t.Path.GTPU == nil || t.around() > 0 {
		return 0
	}
	return t.Path.GTPU.Headers()
}

// payload is the bytes from a packet's tag to its end.
func (t *Tracer) payload() int { return t.params.Frame - t.headers() }

// trial sends one stream, with or without taps.
func (t *Tracer) trial(ctx context.Context, out *Trace, observed bool) error {
	var taps *taps
	var sent record.Trial
	params := t.params
	if observed {
		taps = t.openTaps(ctx)
		params.Opened = taps.opened
	}
	busy, err := t.watch(func() (err error) {
		sent, err = instrument.Draygen{Quantity: record.QStream}.Run(ctx, t.way.From, t.way.To, params)
		return err
	})
	if !observed {
		if err == nil {
			out.plain = append(out.plain, sent)
			out.busy = append(out.busy, busy)
		}
		return err
	}
	seen, failed := taps.end(ctx)
	if errors.Is(err, errUnobserved) && failed != nil {
		return failed
	}
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	out.observed = append(out.observed, sent)
	out.passages = append(out.passages, match(seen, ahead(), stream{t.keep, sent.Delivery.Sent, sent.Duration}))
	return nil
}

// ahead is how far CLOCK_REALTIME, that of sightings, is ahead of CLOCK_MONOTONIC, ns.
func ahead() int64 {
	var before, real, after unix.Timespec
	best, offset := int64(math.MaxInt64), int64(0)
	for range 10 {
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &real) != nil ||
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) != nil {
			continue
		}
		if took := after.Nano() - before.Nano(); took < best {
			best, offset = took, real.Nano()-before.Nano()-took/2
		}
	}
	return offset
}

// watch calls while, and returns what the functions between the ends did meanwhile.
func (t *Tracer) watch(while func() error) (map[string]Busy, error) {
	before := map[string]clock{}
	for _, f := range t.Path.Through() {
		c, err := clockOf(t.Live, f)
		if err != nil {
			return nil, err
		}
		before[f] = c
	}
	if err := while(); err != nil {
		return nil, err
	}
	busy := map[string]Busy{}
	for f, was := range before {
		now, err := clockOf(t.Live, f)
		if err != nil {
			return nil, err
		}
		busy[f] = now.since(was)
	}
	return busy, nil
}

// taps observe all points of a path that can be.
type taps struct {
	cancel  context.CancelFunc
	opening sync.WaitGroup
	running sync.WaitGroup
	points  []point
	views   []*view // by point; nil: unobservable
	errs    []error
}

// errUnobserved ends a trial before its first packet: the taps know why.
var errUnobserved = errors.New("a port cannot be observed")

// openTaps begins to observe. A tap at a native port of an end waits until the generator has opened it.
func (t *Tracer) openTaps(ctx context.Context) *taps {
	ctx, cancel := context.WithCancel(ctx)
	all := &taps{cancel: cancel, points: t.points, views: make([]*view, len(t.points)), errs: make([]error, len(t.points))}
	for i, p := range t.points {
		if p.why != "" {
			continue
		}
		all.opening.Add(1)
		all.running.Add(1)
		go func() {
			defer all.running.Done()
			var tap *tap
			tap, all.errs[i] = t.open(ctx, p)
			failed := all.errs[i] != nil
			all.opening.Done()
			if !failed {
				all.views[i], all.errs[i] = observe(ctx, tap)
			}
		}()
	}
	return all
}

// opened waits until all taps observe, so that they see the first packet.
func (all *taps) opened(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.opening.Wait()
	}()
	late := time.NewTimer(tapPatience)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		all.cancel()
		return errUnobserved
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Tracer) open(ctx context.Context, p point) (*tap, error) {
	tap, err := open(ctx, t.Live, p, t.keep, t.payload())
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("port %s was not opened in time to observe it", p.end)
	}
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", p.end, err)
	}
	return tap, nil
}

// observe observes a point until ctx ends.
func observe(ctx context.Context, tap *tap) (*view, error) {
	tap.run(ctx)
	return tap.view(), errors.Join(tap.failure(), tap.close())
}

// end stops the taps, and returns what they have seen, by observed point.
func (all *taps) end(ctx context.Context) ([]*view, error) {
	slept := host.Sleep(ctx, tail)
	all.cancel()
	all.running.Wait()
	if err := errors.Join(append(all.errs, slept)...); err != nil {
		return nil, err
	}
	var seen []*view
	for i, p := range all.points {
		if p.why == "" || i == 0 { // without a tap, the sender's own stamps count
			seen = append(seen, all.views[i])
		}
	}
	return seen, nil
}

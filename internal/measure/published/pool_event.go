// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
)

// pool measures the rate at which a pool returns packets or, with an event, what the
// event costs.
func pool(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QPool, Start: time.Now(), Marks: []string{}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	p := &poolTrial{live: live, cell: c, workers: poolWorkers(c)[:c.Workers]}
	defer p.killWorkers() // else they wait for the balancer to release them
	if p.from, _, err = ends(live); err != nil {
		return t, err
	}
	if err := p.await(ctx, "the balancer has its workers", func() bool { return workersUp(live.LogTail(balancer, 1)) == c.Workers }); err != nil {
		return t, err
	}
	if c.Event == "" {
		t, err = p.rate(ctx, r.Run.Trial)
	} else {
		t, err = p.disturbed(ctx)
	}
	t.Link, t.Runtimes = live.State.Plan.Links[0].Name, map[string]string{p.from.Name: string(c.Runtime)}
	return t, err
}

// poolTrial is a pool that is up.
type poolTrial struct {
	live          *node.Live
	cell          experiment.Cell
	from          instrument.Endpoint // the generator's port
	workers       []string            // that have sessions, before the event
	before, after sessions            // the event
	gone          string              // the worker that the event has ended
}

// sessions are the counts of all processes that a pool's workers have had.
type sessions struct {
	had   int // sessions that a process has had, each process counted
	begun int // of these, the ones that began there
}

// rate is how many packets the pool returns to a thread that sends and receives. Each
// worker must have a part in that.
func (p *poolTrial) rate(ctx context.Context, length time.Duration) (record.Trial, error) {
	params := instrument.Params{Duration: length, Frame: echoFrame, Encap: &instrument.Encapsulation{Users: poolFlows}}
	t, err := instrument.Draygen{Quantity: record.QFrames}.Loop(ctx, p.from, p.from, params)
	if err != nil {
		return t, err
	}
	for _, worker := range p.workers {
		if reported(p.live.LogTail(worker, poolLog)).had == 0 {
			return t, fmt.Errorf("worker %s got no packet; its last output: %s", worker, p.live.LogTail(worker, 1))
		}
	}
	return t, nil
}

// disturbed is what the event costs under traffic.
func (p *poolTrial) disturbed(ctx context.Context) (record.Trial, error) {
	t := record.Trial{Quantity: record.QPool, Start: time.Now(), Marks: []string{}}
	if err := p.start(ctx, client); err != nil {
		return t, err
	}
	if err := p.event(ctx); err != nil {
		return t, err
	}
	got, ended := answers(p.live.LogTail(client, poolLog))
	if ended {
		return t, fmt.Errorf("the traffic of %v ended before the pool had coped with the event", poolTraffic)
	}
	err := p.await(ctx, "the generator's result", func() bool {
		got, ended = answers(p.live.LogTail(client, poolLog))
		return ended
	})
	if err != nil {
		return t, err
	}
	t.Duration = time.Since(t.Start)
	t.Raw = fmt.Sprintf("%s: %+v, then %+v; %+v\n", p.cell.Event, p.before, p.after, got)
	t.Experiment, err = p.figures(got)
	return t, err
}

// event waits for sessions, makes the cell's event happen, and waits until the pool has
// coped with it.
func (p *poolTrial) event(ctx context.Context) error {
	if err := p.await(ctx, "each worker has sessions", p.serves); err != nil {
		return err
	}
	if err := host.Sleep(ctx, poolSettled); err != nil {
		return err
	}
	p.before = p.sessions()
	move := 1 // to an added worker, as many as like
	if p.cell.Event != experiment.EventAdd {
		move = reported(p.live.LogTail(p.victim(), poolLog)).had
	}
	if err := p.change(ctx); err != nil {
		return err
	}
	if err := p.settle(ctx, move); err != nil {
		return err
	}
	p.after = p.sessions()
	return nil
}

// settle waits until at least so many sessions have moved, and nothing changes any more.
// Until the store has answered for a session, it looks as if it had begun again.
func (p *poolTrial) settle(ctx context.Context, move int) error {
	began := time.Now()
	last, since := p.sessions(), began
	for {
		quiet := poolSettled
		if last.begun > p.before.begun && p.cell.State == "" {
			quiet = poolAnswer
		}
		if last.had-p.before.had >= move && time.Since(since) >= quiet {
			return nil
		}
		if time.Since(began) > poolPatience {
			return fmt.Errorf("%d sessions were to move, and within %v %d did", move, poolPatience, last.had-p.before.had)
		}
		if err := host.Sleep(ctx, poolTick/2); err != nil {
			return err
		}
		if now := p.sessions(); now != last {
			last, since = now, time.Now()
		}
	}
}

// victim is the worker that is killed or leaves.
func (p *poolTrial) victim() string { return p.workers[len(p.workers)-1] }

// change kills the last worker, makes it leave, or adds another.
func (p *poolTrial) change(ctx context.Context) error {
	if p.cell.Event == experiment.EventAdd {
		return p.start(ctx, poolWorkers(p.cell)[p.cell.Workers])
	}
	victim, err := processOf(ctx, p.live, p.victim())
	if err != nil {
		return err
	}
	p.gone = p.victim()
	if p.cell.Event == experiment.EventKill {
		return kill(victim)
	}
	if !victim.Signal(syscall.SIGTERM) {
		return fmt.Errorf("process %d ended before it was asked to leave", victim.PID)
	}
	return victim.AwaitEnd(ctx)
}

// start starts the command of a function that waits for a signal.
func (p *poolTrial) start(ctx context.Context, function string) error {
	if err := p.await(ctx, function+" waits", func() bool { return strings.Contains(p.live.LogTail(function, 1), ready) }); err != nil {
		return err
	}
	return wake(ctx, p.live, function)
}

// await waits until something holds, as long as all functions run that should.
func (p *poolTrial) await(ctx context.Context, what string, holds func() bool) error {
	err := awaitRunning(ctx, p.live, p.gone, poolPatience, what, holds)
	if err != nil {
		return fmt.Errorf("%w; the last output of %s: %s", err, balancer, p.live.LogTail(balancer, 2))
	}
	return nil
}

// serves reports whether every worker has sessions, and each flow is at one worker.
func (p *poolTrial) serves() bool {
	idle := func(worker string) bool { return reported(p.live.LogTail(worker, poolLog)).had == 0 }
	return !slices.ContainsFunc(p.workers, idle) && p.sessions() == sessions{poolFlows, poolFlows}
}

// sessions adds up the reports of all workers.
func (p *poolTrial) sessions() (all sessions) {
	for _, worker := range poolWorkers(p.cell) {
		one := reported(p.live.LogTail(worker, poolLog))
		all.had, all.begun = all.had+one.had, all.begun+one.begun
	}
	return all
}

// figures are what the event cost: sessions that began again, and packets without an
// answer, as if all of them were of sessions that moved.
func (p *poolTrial) figures(got answered) (*record.Experiment, error) {
	lost, moved := p.after.begun-p.before.begun, p.after.had-p.before.had
	if lost < 0 || moved < max(1, lost) || moved > poolFlows {
		return nil, fmt.Errorf("of %d sessions %d moved and %d were lost: the workers' reports contradict each other", poolFlows, moved, lost)
	}
	if got.Rate <= 0 {
		return nil, errors.New("the generator sent nothing")
	}
	return &record.Experiment{Values: map[string]float64{
		"sessions_lost": float64(lost), "sessions_kept": float64(poolFlows - lost), "sessions_moved": float64(moved),
		"packets_lost": float64(got.Lost), "outage": float64(got.Lost) / (got.Rate * float64(moved) / poolFlows) * 1e3,
	}}, nil
}

func (p *poolTrial) killWorkers() {
	functions, _, err := p.live.Status()
	if err != nil {
		return // their supervisor ends them, in its own time
	}
	for _, f := range functions {
		if slices.Contains(poolWorkers(p.cell), f.Name) && f.Process.PID > 0 {
			f.Process.Kill()
		}
	}
}

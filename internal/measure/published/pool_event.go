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
	told          string              // what happened, for the record
}

// sessions are the counts of all processes that a pool's workers have had.
type sessions struct {
	had   int // sessions that a process has had, each process counted
	begun int // of these, the ones that began there
}

// traffic sends to the pool, and receives from it, in one thread.
func (p *poolTrial) traffic(ctx context.Context, length time.Duration, rate uint64) (record.Trial, error) {
	return instrument.Draygen{Quantity: record.QFrames}.Loop(ctx, p.from, p.from, instrument.Params{
		Duration: length, PacketRate: rate, Frame: echoFrame, Encap: &instrument.Encapsulation{Users: poolFlows},
	})
}

// rate is how many packets the pool returns. Each worker must have a part in that.
func (p *poolTrial) rate(ctx context.Context, length time.Duration) (record.Trial, error) {
	t, err := p.traffic(ctx, length, 0)
	if err != nil {
		return t, err
	}
	return t, p.await(ctx, "each worker has sessions", p.serves)
}

// disturbed is what the event costs under traffic, which must go on until the pool has
// coped with it.
func (p *poolTrial) disturbed(ctx context.Context) (record.Trial, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	happened := make(chan error, 1)
	go func() {
		err := p.event(ctx)
		if err != nil {
			cancel() // the traffic serves nothing
		}
		happened <- err
	}()
	t, err := p.traffic(ctx, poolTraffic, poolRate)
	t.Quantity = record.QPool
	select {
	case why := <-happened:
		if why != nil {
			return t, why
		}
	default:
		cancel()
		<-happened // it uses the pool
		return t, errors.Join(err, fmt.Errorf("the traffic of %v ended before the pool had coped with the event", poolTraffic))
	}
	if err != nil {
		return t, err
	}
	t.Raw += p.told
	t.Experiment, err = p.figures(t)
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
	if err := p.change(ctx); err != nil {
		return err
	}
	if err := host.Sleep(ctx, poolSettled); err != nil {
		return err
	}
	p.after = p.sessions()
	p.told = fmt.Sprintf("%s: %+v, then %+v\n", p.cell.Event, p.before, p.after)
	return nil
}

// change kills the last worker, makes it leave, or adds another.
func (p *poolTrial) change(ctx context.Context) error {
	if p.cell.Event == experiment.EventAdd {
		return p.add(ctx)
	}
	victim, err := processOf(ctx, p.live, p.workers[len(p.workers)-1])
	if err != nil {
		return err
	}
	if p.cell.Event == experiment.EventKill {
		return kill(victim)
	}
	if !victim.Signal(syscall.SIGTERM) {
		return fmt.Errorf("process %d ended before it was asked to leave", victim.PID)
	}
	return victim.AwaitEnd(ctx)
}

// add starts the last worker, and waits until it has sessions.
func (p *poolTrial) add(ctx context.Context) error {
	name := poolWorkers(p.cell)[p.cell.Workers]
	process, err := processOf(ctx, p.live, name)
	if err != nil {
		return err
	}
	if !process.Signal(syscall.SIGUSR1) {
		return fmt.Errorf("process %d ended before it was to start its worker", process.PID)
	}
	return p.await(ctx, "the added worker has sessions", func() bool { return reported(p.live.LogTail(name, poolLog)).had > 0 })
}

// await waits until something holds, as long as all functions run.
func (p *poolTrial) await(ctx context.Context, what string, holds func() bool) error {
	for began := time.Now(); !holds(); {
		functions, _, err := p.live.Status()
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(functions, func(f node.FunctionStatus) bool { return f.Phase == node.PhaseFailed }); i >= 0 {
			return fmt.Errorf("function %s ended; its last output: %s", functions[i].Name, p.live.LogTail(functions[i].Name, 2))
		}
		if time.Since(began) > poolPatience {
			return fmt.Errorf("not within %v: %s; the last output of %s: %s", poolPatience, what, balancer, p.live.LogTail(balancer, 2))
		}
		if err := host.Sleep(ctx, poolTick/2); err != nil {
			return err
		}
	}
	return nil
}

// serves reports whether every worker has sessions, and every flow one. A worker that
// is to be added later waits for its signal.
func (p *poolTrial) serves() bool {
	one := func(worker string) bool { return reported(p.live.LogTail(worker, poolLog)).had > 0 }
	waits := p.cell.Event != experiment.EventAdd || strings.Contains(p.live.LogTail(poolWorkers(p.cell)[p.cell.Workers], 1), ready)
	return waits && !slices.ContainsFunc(p.workers, func(w string) bool { return !one(w) }) && p.sessions().begun >= poolFlows
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
// answer, which all were of sessions that moved.
func (p *poolTrial) figures(t record.Trial) (*record.Experiment, error) {
	if t.Delivery == nil {
		return nil, errors.New("the traffic has no counts")
	}
	lost, moved := p.after.begun-p.before.begun, p.after.had-p.before.had
	if lost < 0 || moved < lost || moved > poolFlows {
		return nil, fmt.Errorf("of %d sessions %d moved and %d were lost: the workers' reports contradict each other", poolFlows, moved, lost)
	}
	e := &record.Experiment{Values: map[string]float64{
		"sessions_lost": float64(lost), "sessions_kept": float64(poolFlows - lost), "sessions_moved": float64(moved), "packets_lost": float64(t.Delivery.Lost),
	}}
	if moved == 0 {
		e.Why = map[string]string{"outage": "no session moved"}
		return e, nil
	}
	e.Values["outage"] = float64(t.Delivery.Lost) / (poolRate * float64(moved) / poolFlows) * 1e3
	return e, nil
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

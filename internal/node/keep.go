// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
)

// fileProcesses says which processes carry the chain's links now, if it is
// not those that were started with the link.
const fileProcesses = "processes.json"

const (
	trimEvery = 10 * time.Second // between looks at how long the processes' logs are
	logBytes  = logMegabytes << 20
)

// Revival is what became of a link whose processes have ended.
type Revival struct {
	Processes []transport.Process `json:"processes"`
	Restarts  int                 `json:"restarts"`
	Since     time.Time           `json:"since"`           // of the last change
	Outage    time.Duration       `json:"outage"`          // how long the last one took, ns; 0 while it lasts
	Error     string              `json:"error,omitempty"` // why they could not be started again yet
}

// Revivals are the links of the chain whose processes have been started again, or
// are to be, by link.
func (l *Live) Revivals() (map[string]Revival, error) {
	all := map[string]Revival{}
	err := readJSON(filepath.Join(l.dir, fileProcesses), &all)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	return all, err
}

// processes are those that carry a link now.
func (l *Live) processes(link string, revivals map[string]Revival) []transport.Process {
	report := l.State.Reports[link]
	switch {
	case report == nil:
		return nil
	case len(revivals[link].Processes) > 0 && sameMove(report.Processes, revivals[link].Processes):
		return revivals[link].Processes
	}
	return report.Processes
}

// sameMove reports whether the second are the first, or were started in their
// place: a link that has moved since has others.
func sameMove(first, second []transport.Process) bool {
	return slices.EqualFunc(first, second, func(a, b transport.Process) bool {
		return a.Name == b.Name && a.Log == b.Log
	})
}

// reviveLinks starts the processes of links again that end, until ctx ends. The
// processes themselves then go on.
func (l *Live) reviveLinks(ctx context.Context) {
	k := &keeper{live: l}
	k.start(ctx, l.State.Plan.Links)
	k.wg.Wait()
}

// keeper keeps the links of one chain whole.
type keeper struct {
	live *Live
	mu   sync.Mutex // guards the file of revivals, and kept
	kept map[string]bool
	wg   sync.WaitGroup // of the links that are kept
}

// start keeps the links that are not kept yet.
func (k *keeper) start(ctx context.Context, links []plan.Link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[string]bool{}
	}
	for _, link := range links {
		if k.kept[link.Name] {
			continue
		}
		k.kept[link.Name] = true
		k.wg.Add(1)
		go func() {
			defer k.wg.Done()
			k.keep(ctx, link.Name)
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.kept, link.Name)
		}()
	}
}

// keep looks after one link, over all the transports that it moves to.
func (k *keeper) keep(ctx context.Context, link string) {
	backoff := firstBackoff
	for {
		l, pl, err := k.state(link)
		var revivals map[string]Revival
		if err == nil {
			revivals, err = l.Revivals()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return // the chain has been removed
		}
		if err != nil {
			if host.Sleep(ctx, longestBackoff) != nil {
				return
			}
			continue
		}
		running := l.processes(link, revivals)
		if len(running) == 0 {
			return // nothing that could end
		}
		began := time.Now()
		if !awaitAnyEnd(ctx, running) {
			return
		}
		if now, _, err := k.state(link); err != nil || now.State.Moves[link] != l.State.Moves[link] {
			continue // its end was meant
		}
		if time.Since(began) > healthyAfter {
			backoff = firstBackoff
		}
		if !k.revive(ctx, l, *pl, running, revivals[link].Restarts+1, &backoff) {
			return
		}
		// One that ends at once is not started as fast as it can end.
		if host.Sleep(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, longestBackoff)
	}
}

// state is the chain as its last change left it: another process may have moved
// the link since this one read it.
func (k *keeper) state(link string) (*Live, *plan.Link, error) {
	l, err := k.live.node.load(k.live.Chain.Name)
	if err != nil {
		return nil, nil, err
	}
	if l.State.Plan.Link(link) == nil {
		return nil, nil, fmt.Errorf("no link %s: %w", link, fs.ErrNotExist)
	}
	return l, l.State.Plan.Link(link), nil
}

// awaitAnyEnd waits until one of the processes has ended, and keeps their logs
// short meanwhile; false if ctx ended first.
func awaitAnyEnd(ctx context.Context, processes []transport.Process) bool {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(processes))
	for _, p := range processes {
		go func() { ended <- p.ID.AwaitEnd(watch) }()
	}
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				return true
			}
			if host.Sleep(ctx, trimEvery) != nil { // no descriptor is free, say
				return false
			}
			return slices.ContainsFunc(processes, func(p transport.Process) bool { return !p.ID.Alive() }) || awaitAnyEnd(ctx, processes)
		case <-tick.C:
			for _, p := range processes {
				if p.Log != "" {
					_ = trimLog(p.Log) // it will be tried again
				}
			}
		}
	}
}

// revive starts what has ended again, as often as it takes; false if it cannot
// be, or ctx has ended.
func (k *keeper) revive(ctx context.Context, l *Live, pl plan.Link, dead []transport.Process, restarts int, backoff *time.Duration) bool {
	driver, err := l.node.driver(pl.Transport)
	if err != nil {
		return false
	}
	reviver, ok := driver.(transport.Reviver)
	if !ok {
		return false
	}
	spec, err := l.linkSpec(pl, l.State.Moves[pl.Name].At)
	if err != nil {
		return false
	}
	report := *l.State.Reports[pl.Name]
	report.Processes = slices.Clone(dead)
	r := Revival{Processes: dead, Restarts: restarts - 1, Since: time.Now()}
	for ; ; restarts++ {
		err := reviver.Revive(ctx, spec, &report)
		if ctx.Err() != nil {
			return false
		}
		r.Processes, r.Error = slices.Clone(report.Processes), text(err)
		if err == nil {
			r.Restarts, r.Outage, r.Since = restarts, time.Since(r.Since), time.Now()
		}
		for noted := k.note(pl.Name, r); noted != nil; noted = k.note(pl.Name, r) {
			// A process that is not noted would be taken for the dead one.
			if errors.Is(noted, fs.ErrNotExist) || host.Sleep(ctx, longestBackoff) != nil {
				return false
			}
		}
		if err == nil {
			return true
		}
		if host.Sleep(ctx, *backoff) != nil {
			return false
		}
		*backoff = min(2**backoff, longestBackoff)
	}
}

// note publishes what became of a link.
func (k *keeper) note(link string, r Revival) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, err := k.live.Revivals()
	if err != nil {
		return err
	}
	all[link] = r
	return writeJSON(filepath.Join(k.live.dir, fileProcesses), all)
}

// trimLog keeps a log from growing for ever: beyond its limit it becomes the older
// log, in place of that one, and begins anew. The process goes on appending to the
// file; what it writes in between is lost.
func trimLog(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= logBytes {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".1", content, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, 0)
}

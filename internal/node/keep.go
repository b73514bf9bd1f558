// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
)

// fileProcesses records which processes carry the chain's links now, if they are
// not the original ones.
const fileProcesses = "processes.json"

const (
	trimEvery = 10 * time.Second // between checks of the processes' log sizes
	logBytes  = logMegabytes << 20
)

// Revival is the state of a link whose processes have ended.
type Revival struct {
	Processes []transport.Process `json:"processes"`
	Restarts  int                 `json:"restarts"`
	Since     time.Time           `json:"since"`           // of the last change
	Outage    time.Duration       `json:"outage"`          // length of the last one, ns; 0 while it lasts
	Error     string              `json:"error,omitempty"` // why the restart has failed so far
}

// Revivals are the chain's links with restarted processes, or with restarts
// pending, by link.
func (l *Live) Revivals() (map[string]Revival, error) {
	all := map[string]Revival{}
	err := readJSON(filepath.Join(l.dir, fileProcesses), &all)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return all, nil
	case host.IsDamaged(err):
		// The next restart replaces the file. Until then the links have the processes of the state.
		slog.Warn("what is known of restarted links is lost", "error", err)
		return map[string]Revival{}, nil
	}
	return nil, err
}

// processes are a link's current ones.
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

// sameMove reports whether the second processes are the first or their
// replacements: a link that has moved since has others.
func sameMove(first, second []transport.Process) bool {
	return slices.EqualFunc(first, second, func(a, b transport.Process) bool {
		return a.Name == b.Name && a.Log == b.Log
	})
}

// reviveLinks restarts links' processes that end, until ctx ends. That leaves the
// processes running.
func (l *Live) reviveLinks(ctx context.Context) {
	k := &keeper{live: l}
	k.start(ctx, l.State.Plan.Links)
	k.wg.Wait()
}

// keeper keeps one chain's links working.
type keeper struct {
	live *Live
	mu   sync.Mutex         // guards the revivals, their file, kept, and what is read
	all  map[string]Revival // nil: not read yet
	file os.FileInfo        // of the revivals, as read or written; nil: none
	kept map[string]bool
	read *Live          // the chain as state has read it
	was  [2]os.FileInfo // its files then
	wg   sync.WaitGroup // of the kept links
}

// start keeps links that are not kept yet.
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

// keep watches one link, over all the transports that it moves to.
func (k *keeper) keep(ctx context.Context, link string) {
	backoff := firstBackoff
	for {
		l, pl, err := k.state(link)
		revivals := map[string]Revival{}
		if err == nil {
			revivals[link], err = k.revival(link)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return // the chain is removed
		}
		if err != nil {
			if host.Sleep(ctx, longestBackoff) != nil {
				return
			}
			continue
		}
		running := l.processes(link, revivals)
		if len(running) == 0 {
			return // no process can end
		}
		began := time.Now()
		if !awaitAnyEnd(ctx, running) {
			return
		}
		if now, _, err := k.state(link); err != nil || now.State.Moves[link] != l.State.Moves[link] {
			continue // an intended end
		}
		if time.Since(began) > healthyAfter {
			backoff = firstBackoff
		}
		if !k.revive(ctx, l, *pl, running, revivals[link].Restarts+1, &backoff) {
			return
		}
		// Limit the restart rate of one that ends at once.
		if host.Sleep(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, longestBackoff)
	}
}

// state is the chain after its last change: another process may have moved the link
// since this one read it.
func (k *keeper) state(link string) (*Live, *plan.Link, error) {
	l, err := k.load()
	if err != nil {
		return nil, nil, err
	}
	if l.State.Plan.Link(link) == nil {
		return nil, nil, fmt.Errorf("no link %s: %w", link, fs.ErrNotExist)
	}
	return l, l.State.Plan.Link(link), nil
}

// load reads the chain if its files have changed since. Its links are many, and share one
// copy.
func (k *keeper) load() (*Live, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var now [2]os.FileInfo
	for i, name := range []string{fileChain, fileState} {
		info, err := os.Stat(filepath.Join(k.live.dir, name))
		if err != nil {
			return nil, err
		}
		now[i] = info
	}
	if k.read != nil && sameFile(now[0], k.was[0]) && sameFile(now[1], k.was[1]) {
		return k.read, nil
	}
	l, err := k.live.node.load(k.live.Chain.Name)
	if err == nil {
		k.read, k.was = l, now
	}
	return l, err
}

// sameFile reports whether a file that is only replaced as a whole is still the same.
func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// awaitAnyEnd waits until one of the processes has ended, and trims their logs
// meanwhile. It ends one that hangs. It returns false if ctx ended first.
func awaitAnyEnd(ctx context.Context, processes []transport.Process) bool {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(processes))
	for _, p := range processes {
		go func() { ended <- p.ID.AwaitEnd(watch) }()
		if len(p.Polls) > 0 {
			go endIfAsleep(watch, p, longestSleep)
		}
	}
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				return true
			}
			if host.Sleep(ctx, trimEvery) != nil { // no free descriptor, say
				return false
			}
			return slices.ContainsFunc(processes, func(p transport.Process) bool { return !p.ID.Alive() }) || awaitAnyEnd(ctx, processes)
		case <-tick.C:
			trimLogs(processes)
		}
	}
}

// revive restarts the ended processes, with retries; false if that is impossible,
// or ctx has ended.
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
		trimLogs(dead) // a full one would not show that the next process is ready
		err := reviver.Revive(ctx, spec, &report)
		if ctx.Err() != nil {
			return false
		}
		r.Processes, r.Error = slices.Clone(report.Processes), text(err)
		if err == nil {
			r.Restarts, r.Outage, r.Since = restarts, time.Since(r.Since), time.Now()
		}
		for noted := k.note(pl.Name, r); noted != nil; noted = k.note(pl.Name, r) {
			// An unrecorded process would be mistaken for the dead one.
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

// note publishes the state of a link.
func (k *keeper) note(link string, r Revival) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.know(); err != nil {
		return err
	}
	k.all[link] = r
	return k.write()
}

// revival is what is known of a link's restarts.
func (k *keeper) revival(link string) (Revival, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.know()
	return k.all[link], err
}

// know reads the revivals once: later, this process knows them better than the file.
func (k *keeper) know() (err error) {
	if k.all == nil {
		k.all, err = k.live.Revivals()
		k.file, _ = os.Lstat(filepath.Join(k.live.dir, fileProcesses))
	}
	return err
}

func (k *keeper) write() error {
	path := filepath.Join(k.live.dir, fileProcesses)
	if err := writeJSON(path, k.all); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	k.file = info
	return err
}

// rewrite writes the revivals again if their file is no longer what was written. If that fails,
// the next call tries again.
func (k *keeper) rewrite() {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Lstat(filepath.Join(k.live.dir, fileProcesses))
	if len(k.all) > 0 && (err != nil || k.file == nil || !sameFile(info, k.file)) {
		_ = k.write()
	}
}

func trimLogs(processes []transport.Process) {
	for _, p := range processes {
		if p.Log != "" {
			_ = trimLog(p.Log) // the next round retries
		}
	}
}

// trimLog limits a log's size: beyond the limit it moves the log's end to the older one.
// The process keeps appending; what it writes in between is lost.
func trimLog(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= logBytes {
		return err
	}
	end := io.NewSectionReader(f, info.Size()-logBytes, logBytes)
	older, err := os.OpenFile(path+".1", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = io.Copy(older, end)
		err = errors.Join(err, older.Close())
	}
	return errors.Join(err, f.Truncate(0)) // even if there is no space for the older one
}

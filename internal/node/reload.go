// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
)

// ReloadSignal tells a supervisor that the chain's files have changed.
const ReloadSignal = syscall.SIGUSR1

// Reload makes the supervisor read the chain again: it stops removed functions,
// restarts those with changed commands, and starts new ones.
func (s *Supervisor) Reload() {
	select {
	case s.reload <- struct{}{}:
	default: // one is pending
	}
}

// supervised is a function under supervision.
type supervised struct {
	function chain.Function
	cancel   context.CancelFunc
	done     chan struct{}
}

// sameCommand reports whether two versions of a function run the same command
// identically.
func sameCommand(a, b chain.Function) bool {
	return slices.Equal(a.Command, b.Command) && maps.Equal(a.Env, b.Env) && a.Restart == b.Restart
}

// functions keeps all functions running by their policies until ctx ends.
func (s *Supervisor) functions(ctx context.Context) {
	s.outputs = map[string]*output{}
	running := map[string]*supervised{}
	s.start(ctx, s.live, running)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.reload:
			if err := s.readAgain(ctx, running); err != nil {
				fmt.Fprintln(os.Stderr, "dray: read the chain again:", err)
			}
		}
	}
	stop(slices.Collect(maps.Values(running)))
	s.logKeeper.end()
	for _, out := range s.outputs {
		out.close()
	}
}

// start starts the chain's functions that do not run yet, unless they are held.
func (s *Supervisor) start(ctx context.Context, l *Live, running map[string]*supervised) {
	var wait []*supervised
	s.logKeeper.end() // it has the old outputs
	for _, f := range l.Chain.Functions {
		if running[f.Name] != nil || s.initialPhase(f) != PhaseStarting || slices.Contains(l.State.Held, f.Name) {
			continue
		}
		out := s.outputs[f.Name]
		if out == nil {
			var err error
			if out, err = newOutput(l.LogFile(f.Name)); err != nil {
				s.set(f.Name, func(st *FunctionStatus) { st.Phase, st.Error = PhaseFailed, err.Error() })
				continue
			}
			s.outputs[f.Name] = out
		}
		r := &supervised{function: f, done: make(chan struct{})}
		running[f.Name] = r
		wait = append(wait, r)
	}
	if s.keeper != "" {
		s.logKeeper.begin(s.keepLogKeeper) // until every function has stopped
	}
	for _, r := range wait {
		var own context.Context
		own, r.cancel = context.WithCancel(ctx)
		out := s.outputs[r.function.Name]
		go func() {
			defer close(r.done)
			s.function(own, l, r.function, out)
		}()
	}
}

// readAgain refreshes the running functions, and publishes the outcome.
func (s *Supervisor) readAgain(ctx context.Context, running map[string]*supervised) error {
	revision, err := s.refresh(ctx, running)
	s.mu.Lock()
	s.status.Reloads++
	s.status.ReloadError = text(err)
	if err == nil {
		s.status.Revision = revision
	}
	s.mu.Unlock()
	if unwritten := s.publish(); unwritten != nil {
		s.due() // it is tried again
		err = errors.Join(err, unwritten)
	}
	return err
}

// refresh aligns running functions with the chain's files, and returns the files'
// revision.
func (s *Supervisor) refresh(ctx context.Context, running map[string]*supervised) (revision int, err error) {
	l, err := s.live.node.load(s.live.Chain.Name)
	if err != nil {
		return 0, err
	}
	var gone []*supervised
	for name, r := range running {
		f := l.Chain.Function(name)
		again := slices.Contains(l.State.Unsettled, name) && s.failed(name) // a change starts it again
		if f == nil || slices.Contains(l.State.Held, name) || !sameCommand(*f, r.function) || again {
			gone = append(gone, r)
			delete(running, name)
		}
	}
	stop(gone)
	s.renew(l, running)
	s.start(ctx, l, running)
	s.links.start(ctx, l.State.Plan.Links)
	return l.State.Revision, nil
}

// failed reports whether a function's command has ended otherwise than it should, or has just
// been killed. A one-shot command that has succeeded does not run twice.
func (s *Supervisor) failed(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status.Functions[name]
	return st.Phase == PhaseFailed || st.unrecorded()
}

// renew sets the initial status of every function that is not running.
func (s *Supervisor) renew(l *Live, running map[string]*supervised) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.status.Functions, func(name string, _ FunctionStatus) bool { return l.Chain.Function(name) == nil })
	for _, f := range l.Chain.Functions {
		if running[f.Name] == nil {
			s.status.Functions[f.Name] = FunctionStatus{Name: f.Name, Phase: s.initialPhase(f), Since: time.Now()}
		}
	}
}

// stop stops functions in parallel, and waits until they have ended.
func stop(list []*supervised) {
	var wg sync.WaitGroup
	for _, r := range list {
		r.cancel()
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-r.done
		}()
	}
	wg.Wait()
}

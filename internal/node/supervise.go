// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

// Phase is the state of a command.
type Phase string

const (
	PhaseNone       Phase = "no command" // only its sandbox exists
	PhaseExternal   Phase = "external"   // others run it
	PhaseStarting   Phase = "starting"
	PhaseRunning    Phase = "running"
	PhaseRestarting Phase = "restarting" // ended, waiting to be started again
	PhaseExited     Phase = "exited"     // ended with status 0
	PhaseFailed     Phase = "failed"     // ended otherwise, or could not be started
	PhaseGone       Phase = "gone"       // its sandbox is gone: another program ended it
)

// Phases are all phases.
var Phases = []Phase{PhaseNone, PhaseExternal, PhaseStarting, PhaseRunning, PhaseRestarting, PhaseExited, PhaseFailed, PhaseGone}

// FunctionStatus is a supervisor's view of one function.
type FunctionStatus struct {
	Name     string         `json:"name"`
	Phase    Phase          `json:"phase"`
	Process  host.ProcessID `json:"process"`
	Since    time.Time      `json:"since"`
	Restarts int            `json:"restarts"`
	Exit     int            `json:"exit"` // of the last instance that ended
	Error    string         `json:"error,omitempty"`
}

// Ended reports whether an instance of the command has ended, so that Exit is its status.
func (st FunctionStatus) Ended() bool {
	ended := st.Restarts > 0 || st.Phase == PhaseRestarting || st.Phase == PhaseExited || st.Phase == PhaseFailed
	return ended && st.Error == ""
}

// Status is what a supervisor publishes of a chain.
type Status struct {
	Supervisor host.ProcessID            `json:"supervisor"`
	Revision   int                       `json:"revision"` // of the state in use
	Functions  map[string]FunctionStatus `json:"functions"`
	// Protocol is supervisorProtocol of the supervisor's version; 0: from before it.
	Protocol int `json:"protocol"`
	// Reloads counts the attempts to read the changed chain; ReloadError is why the
	// last one failed.
	Reloads     int    `json:"reloads"`
	ReloadError string `json:"reload_error,omitempty"`
}

// supervisorProtocol is the version of what other processes may ask of a supervisor:
// the meaning of ReloadSignal, and of what it publishes.
const (
	supervisorProtocol = 2
	protocolAgain      = 2 // it also starts functions again whose command has ended, and knows the mtu of a path
	leastProtocol      = 1 // that a change can be asked of
)

const (
	stopGrace       = 3 * time.Second        // between SIGTERM and SIGKILL
	firstBackoff    = 100 * time.Millisecond // before the first restart; doubles
	longestBackoff  = 10 * time.Second
	healthyAfter    = 10 * time.Second     // after running this long, backoff starts at firstBackoff
	publishCheck    = time.Second          // whether the file is still what was published
	publishPause    = 5 * time.Millisecond // between two publications
	publishAgain    = time.Second          // after one that failed
	logMegabytes    = 10                   // of one log file; one older file is kept
	supervisorGroup = "node"               // leaf of the chain's cgroup tree
)

// Supervisor starts the commands of a chain's functions, restarts them by their
// policy, and publishes their status.
type Supervisor struct {
	live      *Live              // as it was at first
	keeper    string             // the program that outlives this process; "": none
	logKeeper background         // runs the log keeper
	outputs   map[string]*output // of the functions that have had a command
	links     *keeper
	reload    chan struct{} // see Reload
	changed   chan struct{} // has an element if the status is to be published
	except    []string      // functions whose commands it leaves alone

	mu      sync.Mutex
	stopped error // what failed to stop
	status  Status
	file    os.FileInfo   // of the status as published
	change  chan struct{} // closed and replaced at each change
}

// Supervise returns a supervisor of the chain's functions, except some; it starts nothing.
func (l *Live) Supervise(except ...string) (*Supervisor, error) {
	self, err := host.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	s := &Supervisor{live: l, links: &keeper{live: l}, change: make(chan struct{}), reload: make(chan struct{}, 1), changed: make(chan struct{}, 1), except: except}
	s.status = Status{Supervisor: self, Revision: l.State.Revision, Protocol: supervisorProtocol, Functions: map[string]FunctionStatus{}}
	for _, f := range l.Chain.Functions {
		s.status.Functions[f.Name] = FunctionStatus{Name: f.Name, Phase: s.initialPhase(f), Since: time.Now()}
	}
	return s, s.publish()
}

func (s *Supervisor) initialPhase(f chain.Function) Phase {
	switch {
	case f.Runtime == chain.RuntimeExternal:
		return PhaseExternal
	case len(f.Command) == 0, slices.Contains(s.except, f.Name):
		return PhaseNone
	}
	return PhaseStarting
}

// Run supervises until ctx ends; then it stops every function, and returns those
// that failed to stop in order.
func (s *Supervisor) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	s.live.leave()
	wg.Add(2)
	go func() {
		defer wg.Done()
		s.live.restartBroker(ctx)
	}()
	go func() {
		defer wg.Done()
		s.publishChanges(ctx)
	}()
	s.links.start(ctx, s.live.State.Plan.Links)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.functions(ctx)
	}()
	wg.Wait()
	<-ctx.Done()
	<-stopped
	s.links.wg.Wait()
	err := s.publish()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.stopped, err)
}

// function keeps one function running by its policy.
func (s *Supervisor) function(ctx context.Context, l *Live, f chain.Function, out *output) {
	backoff := firstBackoff
	for restarts := 0; ; restarts++ {
		started := time.Now()
		code, err := s.once(ctx, l, f, restarts, out)
		out.drain()
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				s.mu.Lock()
				s.stopped = errors.Join(s.stopped, fmt.Errorf("stop function %s: %w", f.Name, err))
				s.mu.Unlock()
			}
			return
		}
		phase := outcome(f.Restart, code, err)
		s.set(f.Name, func(st *FunctionStatus) {
			st.Phase, st.Exit, st.Error, st.Process = phase, code, text(err), host.ProcessID{}
		})
		if phase != PhaseRestarting {
			return
		}
		if time.Since(started) > healthyAfter {
			backoff = firstBackoff
		}
		if host.Sleep(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, longestBackoff)
	}
}

// once runs the function's command until it ends.
func (s *Supervisor) once(ctx context.Context, l *Live, f chain.Function, restarts int, out *output) (int, error) {
	rt, err := l.node.runtime(f.Runtime)
	if err != nil {
		return 0, err
	}
	file, err := out.open()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	peers, grace := l.peers(f), connectGrace
	for try := 1; ; try++ {
		if err := awaitPeers(ctx, peers); err != nil {
			return 0, err
		}
		carriers, err := l.awaitCarriers(ctx, l.carriers(f))
		if err != nil {
			return 0, err
		}
		instance, err := rt.Start(ctx, l.spec(f), runtime.Output{Stdout: file, Stderr: file})
		if err != nil {
			return 0, err
		}
		s.set(f.Name, func(st *FunctionStatus) {
			st.Phase, st.Process, st.Restarts = PhaseRunning, instance.ID(), restarts
		})
		code, again, err := attend(ctx, instance, watchAll(peers, grace, carriers))
		if !again || try == connectTries || ctx.Err() != nil {
			return code, err
		}
		fmt.Fprintf(out.write, "dray: %v: starting the command again\n", err)
		grace *= 2
	}
}

// outcome is the phase after a command ended, or failed to start.
func outcome(policy chain.Restart, code int, err error) Phase {
	failed := code != 0 || err != nil
	switch {
	case policy == chain.RestartAlways, policy == chain.RestartOnFailure && failed:
		return PhaseRestarting
	case failed:
		return PhaseFailed
	}
	return PhaseExited
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (s *Supervisor) set(name string, edit func(*FunctionStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status.Functions[name]
	st.Since = time.Now()
	edit(&st)
	s.status.Functions[name] = st
	close(s.change)
	s.change = make(chan struct{})
	s.due()
}

// due makes the status be published soon.
func (s *Supervisor) due() {
	select {
	case s.changed <- struct{}{}:
	default: // it is due
	}
}

// publish writes the status for other commands; this process uses s.status.
func (s *Supervisor) publish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.live.dir, fileStatus)
	if err := writeJSON(path, s.status); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	s.file = info
	return err
}

// published reports whether the file is still the one that was written.
func (s *Supervisor) published() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(filepath.Join(s.live.dir, fileStatus))
	return err == nil && s.file != nil && sameFile(info, s.file)
}

// publishChanges writes the status after changes, until ctx ends. Changes that come
// together are written once, and what cannot be written is tried again.
func (s *Supervisor) publishChanges(ctx context.Context) {
	failed := false
	check := time.NewTicker(publishCheck)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-check.C:
			s.links.rewrite()
			if s.published() {
				continue
			}
		}
		err := s.publish()
		for ; err != nil && host.Sleep(ctx, publishAgain) == nil; err = s.publish() {
			if !failed {
				fmt.Fprintln(os.Stderr, "dray: the status cannot be written, and is tried again:", err)
			}
			failed = true
		}
		failed = failed && err != nil
		if host.Sleep(ctx, publishPause) != nil {
			return
		}
	}
}

// Settled waits until every command has started and then run for settle, or has
// ended. It returns the failed functions as an error.
func (s *Supervisor) Settled(ctx context.Context, settle time.Duration) error {
	for {
		s.mu.Lock()
		wait, err := settling(s.status.Functions, settle)
		change := s.change
		s.mu.Unlock()
		if wait <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-change:
		case <-time.After(wait):
		}
	}
}

// settling is the least time until all functions have settled, and the failed
// functions.
func settling(functions map[string]FunctionStatus, settle time.Duration) (wait time.Duration, failed error) {
	for _, st := range sortedStatus(functions) {
		switch st.Phase {
		case PhaseStarting:
			wait = max(wait, time.Second)
		case PhaseRunning:
			wait = max(wait, settle-time.Since(st.Since))
			if st.Process.PID != 0 && !st.Process.Alive() { // how it ended is not known yet
				wait = max(wait, endSeen)
			}
		case PhaseFailed, PhaseRestarting, PhaseGone:
			failed = errors.Join(failed, st.failure())
		}
	}
	return wait, failed
}

// endSeen is how soon the end of a process is known as a rule.
const endSeen = 10 * time.Millisecond

func (st FunctionStatus) failure() error {
	if st.Phase == PhaseGone {
		return fmt.Errorf("function %s: %s", st.Name, st.Error)
	}
	if st.Error != "" {
		return fmt.Errorf("function %s did not start: %s", st.Name, st.Error)
	}
	return fmt.Errorf("function %s ended with status %d", st.Name, st.Exit)
}

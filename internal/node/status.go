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
	"strings"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

const sigterm = syscall.SIGTERM

// LogFile is a function's log.
func (l *Live) LogFile(function string) string {
	return filepath.Join(l.dir, "log", function+".log")
}

// ChainFile is the chain file's text from when the chain came up.
func (l *Live) ChainFile() string { return filepath.Join(l.dir, fileChain) }

// SupervisorLog is the detached supervisor's own error log. No function's log has
// the name.
func (l *Live) SupervisorLog() string { return filepath.Join(l.dir, "log", "dray.supervisor.log") }

func sortedStatus(functions map[string]FunctionStatus) []FunctionStatus {
	var list []FunctionStatus
	for _, st := range functions {
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b FunctionStatus) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// published is what the supervisor published last.
func (l *Live) published() (s Status, err error) {
	err = readJSON(filepath.Join(l.dir, fileStatus), &s)
	return s, err
}

// Status reads the supervisor's last published status, with functions sorted by
// name, and whether the supervisor still runs. A chain whose functions never
// started has none here.
func (l *Live) Status() (functions []FunctionStatus, supervised bool, err error) {
	s, err := l.published()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	// A killed supervisor has not seen its functions end; a live one is about to report.
	var full error
	for end := time.Now().Add(recordedWithin); s.Supervisor.Alive() && slices.ContainsFunc(sortedStatus(s.Functions), FunctionStatus.unrecorded); time.Sleep(lockPoll) {
		if full = l.checkSpace(); full != nil || time.Now().After(end) {
			break
		}
		if s, err = l.published(); err != nil {
			return nil, false, err
		}
	}
	functions, supervised = sortedStatus(s.Functions), s.Supervisor.Alive()
	for i, st := range functions {
		if !st.unrecorded() {
			continue
		}
		functions[i].Phase, functions[i].Error = PhaseGone, "it ended while no supervisor ran"
		if supervised {
			functions[i].Error = "it ended, and its supervisor does not record that"
		}
		if full != nil {
			functions[i].Error += ": " + full.Error()
		}
	}
	return functions, supervised, nil
}

// recordedWithin is how soon a supervisor records that a process has ended, unless it cannot.
const recordedWithin = 2 * time.Second

// unrecorded reports whether a command's process has ended, and its supervisor has not said so.
func (st FunctionStatus) unrecorded() bool { return st.Phase == PhaseRunning && !st.Process.Alive() }

// Supervisor is the chain's current or last supervisor process; nil if none.
func (l *Live) Supervisor() *host.ProcessID {
	s, err := l.published()
	if err != nil || s.Supervisor.PID == 0 {
		return nil
	}
	return &s.Supervisor
}

// Check asks whether each function still has the network namespace of its ports; no
// supervisor of ours sees external functions. It returns the faults, by function: a
// *runtime.GoneError, or why that is not known.
func (l *Live) Check(ctx context.Context) map[string]error {
	wrong := map[string]error{}
	var hangs error // of a container engine, which is asked once
	for _, f := range l.Chain.Functions {
		err := hangs
		if hangs == nil || !asksEngine(f) {
			err = l.check(ctx, f)
		}
		if err == nil {
			continue
		}
		wrong[f.Name] = err
		if asksEngine(f) && errors.Is(err, context.DeadlineExceeded) {
			hangs = err
		}
	}
	return wrong
}

// asksEngine reports whether only a container engine knows if a function exists.
func asksEngine(f chain.Function) bool {
	return f.Runtime == chain.RuntimeDocker || f.External != nil && f.External.Container != ""
}

func (l *Live) check(ctx context.Context, f chain.Function) error {
	rt, err := l.node.runtime(f.Runtime)
	if err != nil {
		return err
	}
	if checker, ok := rt.(runtime.Checker); ok {
		if err := checker.Check(ctx, l.spec(f)); err != nil {
			return err
		}
	}
	if sandbox := l.State.Sandboxes[f.Name]; sandbox != nil && !sandbox.Netns.Exists() {
		return &runtime.GoneError{Err: fmt.Errorf("function %s lost its network namespace: %s is not mounted", f.Name, sandbox.Netns)}
	}
	return nil
}

// StartSupervisor starts `program supervise CHAIN` detached, in the chain's own
// cgroup, and waits until the commands have settled.
func (l *Live) StartSupervisor(ctx context.Context, program string, settle time.Duration) error {
	l.leave() // to the supervisor
	leaf := l.node.Cgroup(l.Chain.Name).Child(supervisorGroup)
	if err := leaf.Create(host.Limits{}); err != nil {
		return err
	}
	cmd, err := l.detach(leaf, l.SupervisorLog(), program, []string{"supervise", l.Chain.Name}, nil)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	died := make(chan error, 1)
	go func() { died <- cmd.Wait() }()
	return l.awaitSettled(ctx, died, settle)
}

// awaitSettled polls the status that another process publishes.
func (l *Live) awaitSettled(ctx context.Context, died <-chan error, settle time.Duration) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-died:
			return fmt.Errorf("supervisor ended (%v): %s", err, tail(l.SupervisorLog(), 5))
		case <-tick.C:
		}
		functions, supervised, err := l.Status()
		if err != nil {
			return err
		}
		if !supervised { // it has not published yet
			if err := l.checkSpace(); err != nil {
				return err
			}
			continue
		}
		byName := map[string]FunctionStatus{}
		for _, st := range functions {
			byName[st.Name] = st
		}
		wait, err := settling(byName, settle)
		if wait <= 0 {
			return err
		}
		if err := l.checkSpace(); err != nil { // the supervisor cannot publish what it waits for
			return err
		}
	}
}

// checkSpace is an error if the state of the chain cannot be written.
func (l *Live) checkSpace() error { return host.CheckSpace(l.dir, stateSpace) }

// stateSpace is what replacing a file of a chain's state may take, in bytes.
const stateSpace = 64 << 10

// tail is the last lines of a small file.
func tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// LogTail is the last lines of a function's log.
func (l *Live) LogTail(function string, lines int) string { return tail(l.LogFile(function), lines) }

// Exec runs a program inside a function and returns its exit status.
func (l *Live) Exec(ctx context.Context, function string, argv []string, stdio runtime.Stdio) (int, error) {
	return l.ExecWith(ctx, function, nil, argv, stdio)
}

// ExecWith is Exec with variables in addition to the function's own.
func (l *Live) ExecWith(ctx context.Context, function string, env map[string]string, argv []string, stdio runtime.Stdio) (int, error) {
	f, err := l.function(function)
	if err != nil {
		return 0, err
	}
	rt, err := l.node.runtime(f.Runtime)
	if err != nil {
		return 0, err
	}
	return rt.Exec(ctx, l.spec(*f).With(env), argv, stdio)
}

// GivesTerminal reports if Exec supports a terminal in that function.
func (l *Live) GivesTerminal(function string) bool {
	f := l.Chain.Function(function)
	if f == nil {
		return false
	}
	rt, err := l.node.runtime(f.Runtime)
	_, gives := rt.(runtime.TerminalGiver)
	return err == nil && gives
}

func (l *Live) function(name string) (*chain.Function, error) {
	if f := l.Chain.Function(name); f != nil {
		return f, nil
	}
	var names []string
	for _, f := range l.Chain.Functions {
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("chain %s has no function %q; it has %s", l.Chain.Name, name, strings.Join(names, ", "))
}

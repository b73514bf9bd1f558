// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/oci"
)

// mainID is the container that runs the function's own command.
const mainID = "run"

// Start implements runtime.Runtime.
func (*Runtime) Start(ctx context.Context, s runtime.Spec, out runtime.Output) (runtime.Instance, error) {
	if len(s.Function.Command) == 0 {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, runtime.ErrNothingToStart)
	}
	b := layout{dir: s.Dir}.container(mainID)
	if err := b.Delete(ctx, host.Place{Cgroup: s.EngineCgroup()}); err != nil {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	if err := s.ClearLinks(); err != nil {
		return nil, err
	}
	if err := s.RenewTuns(ctx, layout{dir: s.Dir}.commandUser); err != nil {
		return nil, err
	}
	stdio := runtime.Stdio{Stdout: out.Stdout, Stderr: out.Stderr}
	c, pid, err := runContainer(ctx, s, b, s.RunCgroup(), s.Function.Command, stdio)
	if err != nil {
		return nil, err
	}
	return c.Instance(pid, child.Terminate, func() error { return child.KillCgroup(s.RunCgroup()) }), nil
}

// runContainer starts a container in the sandbox. The child is `runc run`, which
// lives as long as the container and ends with its exit status.
func runContainer(ctx context.Context, s runtime.Spec, b oci.Container, cgroup host.Cgroup, argv []string, stdio runtime.Stdio) (*child.Child, int, error) {
	s, argv, err := s.InTerminal(stdio.Terminal).Resolve(argv, true)
	if err != nil {
		return nil, 0, err
	}
	spec, err := ociSpec(s, argv, cgroup)
	if err != nil {
		return nil, 0, err
	}
	giveTerminal(spec.Process, stdio.Terminal)
	if err := b.WriteConfig(spec); err != nil {
		return nil, 0, fmt.Errorf("function %s: write bundle: %w", s.Function.Name, err)
	}
	cmd, err := b.Command(context.Background(), "run", "--bundle", b.Bundle, "--pid-file", b.PIDFile(), b.ID)
	if err != nil {
		return nil, 0, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	// A container survives a killed runc; its cgroup is killed here.
	c, err := child.StartForwarder(enginePlace(s), cmd, stdio, func() error { return child.KillCgroup(cgroup) })
	if err != nil {
		return nil, 0, fmt.Errorf("function %s: start runc: %w", s.Function.Name, err)
	}
	pid, ok, err := awaitPID(ctx, b, c)
	if err == nil && !ok {
		return nil, 0, engineError(b, s.Function.Name, argv[0])
	}
	if err == nil {
		err = child.AwaitExec(ctx, pid)
	}
	if err == nil {
		err = child.CheckHugePages(s, s.Cgroup, pid)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("function %s: start: %w", s.Function.Name, err), killTree(c, cgroup))
		<-c.Done()
		return nil, 0, err
	}
	return c, pid, nil
}

// GivesTerminals implements runtime.TerminalGiver: runc forwards its own terminal
// to the container's terminal.
func (*Runtime) GivesTerminals() {}

// giveTerminal makes runc set the terminal's size before the program starts. Else it
// would only copy its own size later, and the program could find 0 rows and columns.
func giveTerminal(p *specs.Process, t *runtime.Terminal) {
	if t == nil {
		return
	}
	p.Terminal = true
	p.ConsoleSize = &specs.Box{Height: uint(t.Size.Rows), Width: uint(t.Size.Columns)}
}

// Exec implements runtime.Runtime. If the function's command is not running, the
// program gets its own container in the sandbox.
func (r *Runtime) Exec(ctx context.Context, s runtime.Spec, argv []string, stdio runtime.Stdio) (int, error) {
	p, err := r.Beside(ctx, s, argv, stdio)
	if err != nil {
		return 0, err
	}
	return p.End(ctx)
}

// Program is a program that Beside has started.
type Program struct {
	child  *child.Child
	kill   func() error
	bundle string
}

// End waits for the program's end, and returns its exit status as Exec does. If ctx
// ends the program is killed.
func (p *Program) End(ctx context.Context) (int, error) {
	defer os.RemoveAll(p.bundle)
	return p.child.Finish(ctx, p.kill)
}

// Beside starts a program as Exec does, and returns once it has started.
func (*Runtime) Beside(ctx context.Context, s runtime.Spec, argv []string, stdio runtime.Stdio) (*Program, error) {
	l := layout{dir: s.Dir}
	id, err := execID()
	if err != nil {
		return nil, err
	}
	b := l.container(id)
	var p *Program
	if running(l.container(mainID)) {
		p, err = startInside(ctx, s, b, argv, stdio)
	} else {
		p, err = startApart(ctx, s, b, argv, stdio)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.Bundle))
	}
	p.bundle = b.Bundle
	return p, nil
}

// startApart starts the program in its own container.
func startApart(ctx context.Context, s runtime.Spec, b oci.Container, argv []string, stdio runtime.Stdio) (*Program, error) {
	cgroup := s.Cgroup.Child(b.ID)
	c, _, err := runContainer(ctx, s, b, cgroup, argv, stdio)
	if err != nil {
		return nil, err
	}
	return &Program{child: c, kill: func() error { return killTree(c, cgroup) }}, nil
}

// startInside starts the program in the container that runs the function's command.
func startInside(ctx context.Context, s runtime.Spec, b oci.Container, argv []string, stdio runtime.Stdio) (*Program, error) {
	s, argv, err := s.InTerminal(stdio.Terminal).Resolve(argv, true)
	if err != nil {
		return nil, err
	}
	process, err := ociProcess(s, argv)
	if err != nil {
		return nil, err
	}
	giveTerminal(process, stdio.Terminal)
	if err := b.WriteConfig(process); err != nil {
		return nil, fmt.Errorf("function %s: write bundle: %w", s.Function.Name, err)
	}
	cmd, err := b.Command(context.Background(), "exec", "--process", b.Config(), "--pid-file", b.PIDFile(), mainID)
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	c, err := child.StartForwarder(enginePlace(s), cmd, stdio, nil)
	if err != nil {
		return nil, fmt.Errorf("function %s: start runc: %w", s.Function.Name, err)
	}
	pid, ok, err := awaitPID(ctx, b, c)
	if err == nil && !ok {
		return nil, engineError(b, s.Function.Name, argv[0])
	}
	if err != nil && ctx.Err() == nil {
		err = errors.Join(fmt.Errorf("function %s: start: %w", s.Function.Name, err), child.KillSession(c.PID()))
		<-c.Done()
		return nil, err
	}
	// End handles an interrupted start.
	return &Program{child: c, kill: func() error { return child.KillSession(c.PID(), pid) }}, nil
}

// running reports whether the container's first process runs.
func running(b oci.Container) bool {
	content, err := os.ReadFile(filepath.Join(b.State, b.ID, "state.json"))
	if err != nil {
		return false
	}
	var state struct {
		PID   int    `json:"init_process_pid"`
		Start uint64 `json:"init_process_start"`
	}
	if json.Unmarshal(content, &state) != nil {
		return false
	}
	id, err := host.Identify(state.PID)
	return err == nil && id.Start == state.Start
}

func execID() (string, error) {
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return "exec-" + hex.EncodeToString(b), nil
}

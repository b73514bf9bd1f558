// SPDX-License-Identifier: Apache-2.0

// Package process runs a function as plain host processes, in its own network
// namespace and cgroup. There is no other isolation: the command runs as root and
// sees the host's files.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runtime is the process runtime.
type Runtime struct{ runtime.Base }

// New returns the process runtime.
func New() *Runtime { return &Runtime{runtime.Base(chain.RuntimeProcess)} }

// Probe implements runtime.Runtime.
func (*Runtime) Probe(context.Context) inventory.Item {
	if os.Geteuid() != 0 {
		return inventory.NotTried(string(chain.RuntimeProcess))
	}
	return inventory.Item{Name: string(chain.RuntimeProcess), Status: inventory.OK}
}

// Sandbox implements runtime.Runtime.
func (*Runtime) Sandbox(s runtime.Spec) (*runtime.SandboxBuild, error) {
	sandbox := &runtime.Sandbox{}
	steps := append(s.PortsSteps(sandbox, commandUser, runtime.HostMounts), s.CreateNetns(sandbox))
	steps = append(steps, s.TunSteps(commandUser)...)
	// Last, so removed first: its removal kills everything in the sandbox.
	steps = append(steps, s.CreateCgroup(sandbox, s.RunCgroup()))
	return &runtime.SandboxBuild{Sandbox: sandbox, Steps: steps}, nil
}

// commandUser is the host uid of every command.
func commandUser(context.Context) (int, error) { return os.Geteuid(), nil }

// Start implements runtime.Runtime. When the command ends, the rest of its cgroup
// is killed, as in a container.
func (*Runtime) Start(ctx context.Context, s runtime.Spec, out runtime.Output) (runtime.Instance, error) {
	if len(s.Function.Command) == 0 {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, runtime.ErrNothingToStart)
	}
	run := s.RunCgroup()
	kill := func() error { return child.KillCgroup(run) }
	if err := run.Kill(ctx); err != nil {
		return nil, err
	}
	if err := s.ClearLinks(); err != nil {
		return nil, err
	}
	if err := s.RenewTuns(ctx, commandUser); err != nil {
		return nil, err
	}
	cmd, err := command(s, s.Function.Command)
	if err != nil {
		return nil, err
	}
	c, err := start(s, cmd, runtime.Stdio{Stdout: out.Stdout, Stderr: out.Stderr}, kill)
	if err != nil {
		return nil, err
	}
	return c.Instance(c.PID(), func(id host.ProcessID) { id.Signal(syscall.SIGTERM) }, kill), nil
}

// GivesTerminals implements runtime.TerminalGiver.
func (*Runtime) GivesTerminals() {}

// Exec implements runtime.Runtime.
func (*Runtime) Exec(ctx context.Context, s runtime.Spec, argv []string, stdio runtime.Stdio) (int, error) {
	s = s.InTerminal(stdio.Terminal)
	cmd, err := command(s, argv)
	if err != nil {
		return 0, err
	}
	c, err := start(s, cmd, stdio, nil)
	if err != nil {
		return 0, err
	}
	return c.Finish(ctx, func() error { return child.KillSession(c.PID()) })
}

func start(s runtime.Spec, cmd *exec.Cmd, stdio runtime.Stdio, atExit func() error) (*child.Child, error) {
	c, err := child.StartWith(host.Place{Netns: s.Netns(), Cgroup: s.RunCgroup()}, cmd, stdio, atExit)
	var bad *os.PathError
	if errors.As(err, &bad) && bad.Path == cmd.Path {
		return nil, &runtime.CommandError{Function: s.Function.Name, Command: cmd.Args[0], Reason: bad.Err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("function %s: start %s: %w", s.Function.Name, cmd.Args[0], err)
	}
	return c, nil
}

// command looks the program up in the function's PATH, not in dray's.
func command(s runtime.Spec, argv []string) (*exec.Cmd, error) {
	s, argv, err := s.Resolve(argv, false)
	if err != nil {
		return nil, err
	}
	env := s.HostEnviron()
	path, err := lookPath(argv[0], env)
	if err != nil {
		return nil, &runtime.CommandError{Function: s.Function.Name, Command: argv[0], Reason: err.Error()}
	}
	return &exec.Cmd{Path: path, Args: argv, Env: env, Dir: "/"}, nil
}

func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return filepath.Join("/", name), nil
	}
	for _, e := range env {
		list, isPath := strings.CutPrefix(e, "PATH=")
		if !isPath {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join("/", dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", errors.New("not found in PATH")
}

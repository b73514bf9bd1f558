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
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runtime is the process runtime.
type Runtime struct{}

// New returns the process runtime.
func New() *Runtime { return &Runtime{} }

// Name implements runtime.Runtime.
func (*Runtime) Name() chain.RuntimeName { return chain.RuntimeProcess }

// Probe implements runtime.Runtime.
func (*Runtime) Probe(context.Context) inventory.Item {
	if os.Geteuid() != 0 {
		return inventory.NotTried(string(chain.RuntimeProcess))
	}
	return inventory.Item{Name: string(chain.RuntimeProcess), Status: inventory.OK}
}

// Removers implements runtime.Runtime: package host removes all that it makes.
func (*Runtime) Removers() step.Removers { return nil }

func netns(s runtime.Spec) host.Netns { return host.Netns{Path: filepath.Join(s.Dir, "net")} }

// Sandbox implements runtime.Runtime.
func (*Runtime) Sandbox(s runtime.Spec) (*runtime.SandboxBuild, error) {
	sandbox := &runtime.Sandbox{}
	ns := netns(s)
	steps := append(s.PortsSteps(sandbox, func(context.Context) (int, error) { return os.Geteuid(), nil }), []step.Step{
		{
			Name:  s.Function.Name + ": create network namespace",
			Makes: []step.Resource{host.NamespaceResource(ns.Path)},
			Do: func(context.Context) error {
				sandbox.Netns = ns
				return host.CreateNetns(ns.Path)
			},
		},
		// Last, so removed first: its removal kills everything in the sandbox.
		{
			Name:  s.Function.Name + ": create cgroup",
			Makes: s.CgroupResources(),
			Do: func(context.Context) error {
				sandbox.Tools = s.ToolsCgroup()
				return s.CreateCgroups(s.RunCgroup(), s.ToolsCgroup())
			},
		},
	}...)
	return &runtime.SandboxBuild{Sandbox: sandbox, Steps: steps}, nil
}

// Start implements runtime.Runtime. When the command ends, the rest of its cgroup
// is killed, as in a container.
func (*Runtime) Start(ctx context.Context, s runtime.Spec, out runtime.Output) (runtime.Instance, error) {
	if len(s.Function.Command) == 0 {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, runtime.ErrNothingToStart)
	}
	run := s.RunCgroup()
	if err := run.Kill(ctx); err != nil {
		return nil, err
	}
	if err := s.ClearLinks(); err != nil {
		return nil, err
	}
	cmd, err := command(s, s.Function.Command)
	if err != nil {
		return nil, err
	}
	c, err := start(s, cmd, runtime.Stdio{Stdout: out.Stdout, Stderr: out.Stderr}, func() error { return child.KillCgroup(run) })
	if err != nil {
		return nil, err
	}
	id, err := host.Identify(c.PID())
	if err != nil { // it has ended already
		id = host.ProcessID{PID: c.PID()}
	}
	return &instance{Child: c, id: id, run: run}, nil
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
	if err := c.End(ctx, func() error { return child.KillSession(c.PID()) }); err != nil {
		return 0, err
	}
	return c.Wait()
}

func start(s runtime.Spec, cmd *exec.Cmd, stdio runtime.Stdio, atExit func() error) (*child.Child, error) {
	c, err := child.StartWith(host.Place{Netns: netns(s), Cgroup: s.RunCgroup()}, cmd, stdio, atExit)
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

type instance struct {
	*child.Child
	id  host.ProcessID
	run host.Cgroup
}

// ID implements runtime.Instance.
func (i *instance) ID() host.ProcessID { return i.id }

// Stop implements runtime.Instance.
func (i *instance) Stop(ctx context.Context) error {
	i.id.Signal(syscall.SIGTERM)
	return i.End(ctx, func() error { return child.KillCgroup(i.run) })
}

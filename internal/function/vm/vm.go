// SPDX-License-Identifier: Apache-2.0

// Package vm runs a function in its own virtual machine: Debian's kernel, the host's
// programs, and for each port a network interface with that port's name, addresses and
// MTU. Ports are plumbed on the host, in QEMU's network namespace; a tap joins each to
// its interface in the guest. With macvtap the tap is the port itself. If the transport
// is a vhost-user switch, the port is a device that the switch reaches directly.
package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runtime is the vm runtime.
type Runtime struct{ runtime.Base }

// New returns the vm runtime.
func New() *Runtime { return &Runtime{runtime.Base(chain.RuntimeVM)} }

// Probe implements runtime.Runtime. It looks for the programs and boots nothing:
// the first guest shows whether the CPU or an emulator runs it.
func (*Runtime) Probe(context.Context) inventory.Item {
	err := probe()
	if err == nil && os.Geteuid() != 0 {
		return inventory.NotTried(string(chain.RuntimeVM))
	}
	return host.ProbeItem(string(chain.RuntimeVM), err)
}

func probe() error {
	const what = "runtime vm"
	for program, pkg := range map[string]string{guest.Emulator: "qemu-system-x86", "dpkg-deb": "dpkg", "depmod": "kmod", "ip": "iproute2"} {
		if _, err := host.NeedProgram(what, program, pkg); err != nil {
			return err
		}
	}
	_, err := guest.FindAgent()
	return err
}

// guestDir is the directory of the function's guest.
func guestDir(s runtime.Spec) string { return filepath.Join(s.Dir, "guest") }

// machineCgroup holds QEMU, clientsCgroup the processes that represent programs
// in the guest. The function's limits apply inside the guest and count neither.
func machineCgroup(s runtime.Spec) host.Cgroup { return s.EngineCgroup().Child("machine") }

func clientsCgroup(s runtime.Spec) host.Cgroup { return s.EngineCgroup().Child("clients") }

// Sandbox implements runtime.Runtime. Boot boots the guest once the ports exist.
func (*Runtime) Sandbox(s runtime.Spec) (*runtime.SandboxBuild, error) {
	if err := check(s); err != nil {
		return nil, err
	}
	sandbox := &runtime.Sandbox{}
	dir := guestDir(s)
	steps := []step.Step{
		{
			Name:  s.Function.Name + ": create the guest's directory",
			Makes: []step.Resource{host.DirResource(dir)},
			Do: func(context.Context) error {
				sandbox.Guest = dir
				return os.Mkdir(dir, 0o700)
			},
		},
		s.CreateNetns(sandbox),
		s.CreateCgroup(sandbox),
		linksStep(s, sandbox),
		// Last, so removed first: its removal kills the guest.
		{
			Name:  s.Function.Name + ": create the guest's cgroup",
			Makes: []step.Resource{host.CgroupResource(s.EngineCgroup())},
			Do: func(context.Context) error {
				return errors.Join(machineCgroup(s).Create(host.Limits{CPUs: s.CPUs}), clientsCgroup(s).Create(host.Limits{}))
			},
		},
	}
	return &runtime.SandboxBuild{Sandbox: sandbox, Steps: steps}, nil
}

// runtimeDir is EAL's directory in the guest.
const runtimeDir = "/tmp"

// linksStep makes a directory for each port, in case its transport reaches the
// machine by a socket.
func linksStep(s runtime.Spec, sandbox *runtime.Sandbox) step.Step {
	dir := filepath.Join(s.Dir, "links")
	return step.Step{
		Name:  s.Function.Name + ": create the directories of the ports' sockets",
		Makes: []step.Resource{host.DirResource(dir), host.DirResource(s.PortsDir())},
		Do: func(context.Context) error {
			sandbox.Links, sandbox.PortsUser, sandbox.RuntimeDir = dir, user(s), runtimeDir
			if s.Function.HasPort(chain.FaceNative) {
				if err := s.MakePortsDir(0o700); err != nil {
					return err
				}
				sandbox.Ports = s.PortsDir()
			}
			if err := host.MakeDir(dir, 0o711); err != nil {
				return err
			}
			for _, p := range s.Function.Ports {
				if err := os.Mkdir(s.LinkDir(p.Name), 0o700); err != nil {
					return err
				}
				if err := os.Chown(s.LinkDir(p.Name), user(s), -1); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// check refuses features that a guest cannot have.
func check(s runtime.Spec) error {
	if len(s.Function.HugePages) > 0 && !s.HasDpdkPorts() {
		return &host.Unsupported{What: "hugepages with runtime vm", Why: "a guest uses them for dpdk ports only", Fix: "remove them, or use runtime process"}
	}
	if contained(s) {
		if _, err := host.NeedProgram("container in a machine", "runc", "runc"); err != nil {
			return err
		}
	}
	for _, p := range s.Function.Ports {
		if p.Queues > 1 {
			return &host.Unsupported{What: "queues of port " + p.Name + " with runtime vm", Why: "the guest's device has one", Fix: "remove queues, or use another runtime"}
		}
	}
	return nil
}

// Start implements runtime.Runtime. Stopping the command leaves the guest running for
// the next start.
func (r *Runtime) Start(ctx context.Context, s runtime.Spec, out runtime.Output) (runtime.Instance, error) {
	if len(s.Function.Command) == 0 {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, runtime.ErrNothingToStart)
	}
	c, err := r.run(ctx, s, wire.RunIt, s.Function.Command, runtime.Stdio{Stdout: out.Stdout, Stderr: out.Stderr})
	if err != nil {
		return nil, err
	}
	return c.Instance(c.PID(), func(id host.ProcessID) { id.Signal(syscall.SIGTERM) }, killer(c)), nil
}

// Exec implements runtime.Runtime.
func (r *Runtime) Exec(ctx context.Context, s runtime.Spec, argv []string, stdio runtime.Stdio) (int, error) {
	c, err := r.run(ctx, s, wire.Beside, argv, stdio)
	if err != nil {
		return 0, err
	}
	return c.Finish(ctx, killer(c))
}

// killer kills the process that represents a program in the guest.
func killer(c *child.Child) func() error {
	return func() error { return child.KillSession(c.PID()) }
}

// programGroup is the guest's control group with the function's limits.
const programGroup = "function"

// contained reports whether the command runs in a container in the machine.
func contained(s runtime.Spec) bool {
	return s.Function.VM != nil && s.Function.VM.Runtime == chain.RuntimeRunc
}

// request is the request to the guest's agent.
func request(s runtime.Spec, verb wire.Verb, argv []string) wire.Request {
	limits := s.Limits()
	r := wire.Request{
		Argv: argv, Env: s.Environ(), Dir: "/",
		Group: programGroup, Memory: limits.Memory, Pids: uint64(limits.Pids),
	}
	if contained(s) {
		r.Container = &wire.Container{Name: s.Function.Name, Verb: verb}
	}
	return r
}

// run starts a program in the guest, booting it if necessary, and returns when it
// runs.
func (r *Runtime) run(ctx context.Context, s runtime.Spec, verb wire.Verb, argv []string, stdio runtime.Stdio) (*child.Child, error) {
	if err := r.Boot(ctx, s); err != nil {
		return nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	s, argv, err := s.Resolve(argv, true)
	if err != nil {
		return nil, err
	}
	request := request(s, verb, argv)
	var c *child.Child
	started, err := guest.ReportingCommand(guestDir(s), request, func(cmd *exec.Cmd) error {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio.Stdin, stdio.Stdout, stdio.Stderr
		var err error
		c, err = child.Start(host.Place{Cgroup: clientsCgroup(s)}, cmd, nil)
		return err
	})
	if err == nil {
		err = started(ctx)
	}
	if err == nil {
		return c, nil
	}
	if c != nil {
		err = errors.Join(err, child.KillSession(c.PID()))
		<-c.Done()
	}
	if errors.Is(err, guest.ErrSilent) {
		// The next start boots another.
		err = errors.Join(err, machineCgroup(s).Kill(context.WithoutCancel(ctx)))
	}
	var bad *guest.StartError
	if errors.As(err, &bad) {
		return nil, &runtime.CommandError{Function: s.Function.Name, Command: argv[0], Reason: bad.Reason}
	}
	return nil, fmt.Errorf("function %s: start %s: %w", s.Function.Name, argv[0], err)
}

// SPDX-License-Identifier: Apache-2.0

// Package external is for functions that Drayage does not run: it finds their
// network namespace, plumbs ports into it and measures. It neither starts nor
// ends their processes.
//
// Instruments run in a cgroup of Drayage's own, on the function's CPUs, and not
// in the function's cgroup: Drayage must be able to kill its cgroup.
package external

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runtime is the external runtime.
type Runtime struct {
	runtime.Base
	docker dockercli.Client
}

// New returns the external runtime; docker resolves functions that are named by
// container.
func New(docker dockercli.Client) *Runtime {
	return &Runtime{runtime.Base(chain.RuntimeExternal), docker}
}

// Probe implements runtime.Runtime.
func (*Runtime) Probe(context.Context) inventory.Item {
	if os.Geteuid() != 0 {
		return inventory.NotTried(string(chain.RuntimeExternal))
	}
	return inventory.Item{Name: string(chain.RuntimeExternal), Status: inventory.OK}
}

// Sandbox implements runtime.Runtime. The namespace is pinned, so that a reused
// pid or path cannot lead Drayage into another one.
func (r *Runtime) Sandbox(s runtime.Spec) (*runtime.SandboxBuild, error) {
	if s.Function.External == nil {
		return nil, fmt.Errorf("function %s: runtime external needs one of pid, container, netns", s.Function.Name)
	}
	sandbox := &runtime.Sandbox{}
	pinned := s.Netns()
	steps := []step.Step{
		{
			Name:  s.Function.Name + ": pin the external network namespace",
			Makes: []step.Resource{host.NamespaceResource(pinned.Path)},
			Do: func(ctx context.Context) error {
				source, _, err := r.find(ctx, s)
				if err != nil {
					return err
				}
				if err := host.PinNetns(source, pinned.Path); err != nil {
					return fmt.Errorf("function %s: %w", s.Function.Name, err)
				}
				sandbox.Netns = pinned
				return refuseHostNetns(s, pinned)
			},
		},
		{
			Name:  s.Function.Name + ": create cgroup for instruments",
			Makes: s.CgroupResources(),
			Do: func(ctx context.Context) error {
				_, pid, err := r.find(ctx, s)
				if err != nil {
					return err
				}
				sandbox.Tools = s.ToolsCgroup()
				return createCgroup(s, pid)
			},
		},
	}
	// The function's creator may have mounts of its own.
	steps = append(steps, s.PortsSteps(sandbox, func(ctx context.Context) (int, error) { return r.user(ctx, s) }, nil)...)
	return &runtime.SandboxBuild{Sandbox: sandbox, Steps: steps}, nil
}

// user is the user of the function, who may open its native ports: root if only
// its network namespace is known.
func (r *Runtime) user(ctx context.Context, s runtime.Spec) (int, error) {
	_, pid, err := r.find(ctx, s)
	if err != nil || pid == 0 {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid), &st); err != nil {
		return 0, fmt.Errorf("function %s: user of process %d: %w", s.Function.Name, pid, err)
	}
	return int(st.Uid), nil
}

// find returns a file that names the function's network namespace, and the
// process that names the function, or 0. The error is a *runtime.GoneError if there is none.
func (r *Runtime) find(ctx context.Context, s runtime.Spec) (source string, pid int, err error) {
	e := s.Function.External
	switch {
	case e.Netns != "":
		return e.Netns, 0, nil
	case e.Container != "":
		pid, err = r.docker.PID(ctx, e.Container)
		switch {
		case dockercli.Ended(err):
			return "", 0, &runtime.GoneError{Err: fmt.Errorf("function %s: %w", s.Function.Name, err), Ended: true}
		case err != nil:
			return "", 0, fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
	default:
		pid = e.PID
	}
	_, err = host.Identify(pid)
	switch {
	case host.Exited(err):
		err = fmt.Errorf("function %s: process %d is not running: start the function first, then name its pid", s.Function.Name, pid)
		return "", 0, &runtime.GoneError{Err: err, Ended: true}
	case err != nil:
		return "", 0, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	return "/proc/" + strconv.Itoa(pid) + "/ns/net", pid, nil
}

// refuseHostNetns keeps ports out of the host's own namespace, if they would be
// among the host's interfaces.
func refuseHostNetns(s runtime.Spec, ns host.Netns) error {
	own, err := host.HostNetns.Inode()
	if err != nil {
		return err
	}
	found, err := ns.Inode()
	if err != nil {
		return err
	}
	if own == found {
		return fmt.Errorf("function %s: it is in the host's own network namespace: start it in its own (docker run --network none, unshare --net, PrivateNetwork=yes)", s.Function.Name)
	}
	return nil
}

// createCgroup makes the instruments' cgroup, limited to the function's CPUs.
func createCgroup(s runtime.Spec, pid int) error {
	if len(s.CPUs) == 0 && pid != 0 {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &set); err != nil {
			return fmt.Errorf("function %s: CPUs of process %d: %w", s.Function.Name, pid, err)
		}
		for cpu := 0; cpu < 64*len(set); cpu++ {
			if set.IsSet(cpu) {
				s.CPUs = append(s.CPUs, cpu)
			}
		}
	}
	return s.CreateCgroups(s.ToolsCgroup())
}

// Check implements runtime.Checker: the function may end, or change its
// namespace, without notice.
func (r *Runtime) Check(ctx context.Context, s runtime.Spec) error {
	source, _, err := r.find(ctx, s)
	if err != nil {
		return err
	}
	found := host.Netns{Path: source}
	if !found.Exists() {
		return &runtime.GoneError{Err: fmt.Errorf("function %s: %s is not a network namespace", s.Function.Name, source), Ended: true}
	}
	now, err := found.Inode()
	then, pinErr := s.Netns().Inode()
	switch {
	case err != nil || pinErr != nil:
		return errors.Join(err, pinErr)
	case now != then:
		return &runtime.GoneError{Err: fmt.Errorf("function %s was restarted in another network namespace", s.Function.Name)}
	}
	return nil
}

// Start implements runtime.Runtime.
func (*Runtime) Start(_ context.Context, s runtime.Spec, _ runtime.Output) (runtime.Instance, error) {
	return nil, fmt.Errorf("function %s is external: %w", s.Function.Name, runtime.ErrNothingToStart)
}

// ErrNoExec is returned by Exec: only the function's operator knows how to run a
// program inside it.
var ErrNoExec = errors.New("no program can be started in an external function: use docker exec, or nsenter --target PID --all")

// Exec implements runtime.Runtime.
func (*Runtime) Exec(_ context.Context, s runtime.Spec, _ []string, _ runtime.Stdio) (int, error) {
	return 0, fmt.Errorf("function %s: %w", s.Function.Name, ErrNoExec)
}

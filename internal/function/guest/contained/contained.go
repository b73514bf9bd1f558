// SPDX-License-Identifier: Apache-2.0

// Package contained runs a function's command in a container in its virtual machine.
// The guest's agent starts this keeper for each program. The keeper drives the runc
// runtime as the host does, on the guest's own kernel and root.
package contained

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/inside"
	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/internal/function/runc"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// keeperFailed is the exit status of a keeper that failed.
const keeperFailed = 125

// startPatience bounds the start of a container, in a guest that may be emulated.
const startPatience = 2 * time.Minute

// Main is `dray-guest contain REQUEST`, in the guest. It returns the program's exit
// status.
func Main(argument string) int {
	unix.CloseOnExec(inside.ReportFD)
	k := keeper{report: os.NewFile(inside.ReportFD, "report")}
	if err := json.Unmarshal([]byte(argument), &k.request); err != nil || k.request.Container == nil {
		fmt.Fprintf(os.Stderr, "dray-guest: %q is not a container request: %v\n", argument, err)
		return keeperFailed
	}
	code, err := k.keep()
	if err != nil {
		k.failed(err)
		fmt.Fprintf(os.Stderr, "dray-guest: container: %v\n", err)
		return keeperFailed
	}
	return code
}

// keeper handles one request.
type keeper struct {
	request wire.Request
	report  *os.File
}

// started reports to the agent that the program runs.
func (k *keeper) started() { k.say(inside.ReportStarted) }

// failed reports why the program cannot run, unless started was reported.
func (k *keeper) failed(err error) {
	reason := err.Error()
	var bad *runtime.CommandError
	if errors.As(err, &bad) {
		reason = bad.Reason
	}
	k.say(reason)
}

func (k *keeper) say(text string) {
	if k.report == nil {
		return
	}
	_, _ = io.WriteString(k.report, text) // an agent that does not listen has killed this process
	k.report.Close()
	k.report = nil
}

func (k *keeper) keep() (int, error) {
	s, err := k.spec()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	switch k.request.Container.Verb {
	case wire.Prepare:
		if err := prepare(ctx, s); err != nil {
			return 0, err
		}
		k.started()
		return 0, nil
	case wire.RunIt:
		return k.run(ctx, s)
	default:
		return k.beside(s)
	}
}

// spec is the function as the guest sees it: the machine already applies host
// settings such as CPUs.
func (k *keeper) spec() (runtime.Spec, error) {
	r := k.request
	env := map[string]string{}
	for _, e := range r.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	group, err := ownGroup()
	if err != nil {
		return runtime.Spec{}, err
	}
	return runtime.Spec{
		Chain:    "guest",
		Function: chain.Function{Name: r.Container.Name, Runtime: chain.RuntimeRunc, Command: r.Argv, Env: env, Memory: units.Bytes(r.Memory), Pids: int(r.Pids)},
		Dir:      inside.ContainerDir, State: inside.ContainerDir,
		// Below the group that the agent made for this program: killing that kills the
		// container.
		Cgroup: group.Child("container"),
	}, nil
}

// ownGroup is the control group that the agent put this process into. It moves to a
// child: a group with processes cannot delegate its controllers.
func ownGroup() (host.Cgroup, error) {
	group, err := host.CgroupOf(os.Getpid())
	if err != nil {
		return group, err
	}
	group = host.Cgroup{Path: group.Path}
	return group, inside.EnterChild("keeper")
}

// prepare makes the container's namespaces with the machine's interfaces.
func prepare(ctx context.Context, s runtime.Spec) error {
	for _, dir := range []string{inside.ContainerParent, s.Dir} {
		if err := host.MakeDirs(dir, 0o711); err != nil {
			return err
		}
	}
	build, err := runc.New().Sandbox(s)
	if err != nil {
		return err
	}
	for _, step := range build.Steps {
		if err := step.Do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.Name, err)
		}
	}
	names, err := host.HostNetns.Interfaces()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := host.HostNetns.Move(name, build.Sandbox.Netns); err != nil {
			return err
		}
	}
	return nil
}

// groups makes one program's control groups: the agent removes them with it.
func groups(s runtime.Spec) error {
	return errors.Join(s.EngineCgroup().Create(host.Limits{}), s.CreateCgroups())
}

// run runs the function's command.
func (k *keeper) run(ctx context.Context, s runtime.Spec) (int, error) {
	if err := groups(s); err != nil {
		return 0, err
	}
	incoming := listen()
	i, err := runc.New().Start(ctx, s, runtime.Output{Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return 0, err
	}
	k.started()
	go func() {
		for sig := range incoming {
			switch sig {
			case unix.SIGTERM:
				go i.Stop(context.Background()) // Wait reports how it ends
			case unix.SIGQUIT:
				go i.Stop(ended())
			default:
				i.ID().Signal(sig.(unix.Signal))
			}
		}
	}()
	return i.Wait()
}

// beside runs another program in the running container, or else in its own.
func (k *keeper) beside(s runtime.Spec) (int, error) {
	if err := groups(s); err != nil {
		return 0, err
	}
	whole, end := context.WithCancel(context.Background())
	defer end()
	incoming := listen()
	go func() {
		<-incoming
		end()
	}()
	ctx, cancel := context.WithTimeout(whole, startPatience)
	defer cancel()
	p, err := runc.New().Beside(ctx, s, k.request.Argv, runtime.Stdio{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return 0, err
	}
	k.started()
	return p.End(whole)
}

// ended is a cancelled context: Stop with it kills.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// listen receives the signals that the agent forwards.
func listen() <-chan os.Signal {
	incoming := make(chan os.Signal, 16)
	signal.Notify(incoming, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	return incoming
}

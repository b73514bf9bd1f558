// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
)

// creationLimit bounds the time to make a container, whose image is already here.
var creationLimit = 2 * time.Minute

// create runs a client that makes a container to its end, even if dray is interrupted: the
// daemon would finish the work of a killed client later, unobserved. Only a daemon that hangs
// is not waited for.
func (r *Runtime) create(s runtime.Spec, args ...string) error {
	cmd := r.Client.Command(context.Background(), args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	c, err := child.Start(host.Place{Cgroup: createCgroup(s)}, cmd, nil)
	if err != nil {
		return err
	}
	hangs := time.AfterFunc(creationLimit, func() { _ = child.KillSession(c.PID()) })
	code, err := c.Wait()
	switch {
	case !hangs.Stop():
		err = &dockercli.Error{Verb: args[0], Err: r.Client.Hangs(creationLimit)}
	case err == nil && code != 0:
		err = &dockercli.Error{Verb: args[0], Stderr: errs.String(), Err: fmt.Errorf("exit status %d", code)}
	}
	return err
}

// checkHugePages asks the pause container, which Docker places as it places the
// function's: the function's command may end before anyone could look.
func (r *Runtime) checkHugePages(ctx context.Context, s runtime.Spec) error {
	if len(s.Function.HugePages) == 0 {
		return nil
	}
	pid, err := r.Client.PID(ctx, pauseName(s))
	if err != nil {
		return err
	}
	return child.CheckHugePages(s, pauseCgroup(s), pid)
}

// runContainer creates and starts a container. The child is a docker client,
// which lives as long as the container and ends with its exit status.
func (r *Runtime) runContainer(ctx context.Context, s runtime.Spec, name string, argv []string, stdio runtime.Stdio) (*child.Child, state, error) {
	fail := func(err error) (*child.Child, state, error) {
		return nil, state{}, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	if err := r.checkHugePages(ctx, s); err != nil {
		return fail(err)
	}
	flags, err := r.functionFlags(ctx, s, name, argv)
	if err != nil {
		return fail(err)
	}
	create, start := append([]string{"create"}, terminalFlags(stdio)...), []string{"start", "--attach"}
	if stdio.Stdin != nil {
		create, start = append(create, "--interactive"), append(start, "--interactive")
	}
	if err := r.create(s, append(create, flags...)...); err != nil {
		return fail(err)
	}
	cmd := r.Client.Command(context.Background(), append(start, name)...)
	c, err := child.StartWith(host.Place{Cgroup: clientCgroup(s)}, cmd, stdio, nil)
	if err != nil {
		return fail(err)
	}
	st, err := r.awaitStarted(ctx, name, c)
	if err == nil && !st.started {
		err = startError(s.Function.Name, argv[0], st.reason)
	}
	if err == nil && st.pid != 0 {
		err = child.AwaitExec(ctx, st.pid)
	}
	if err != nil {
		_ = r.removeContainer(context.WithoutCancel(ctx), s, name)
		_ = child.KillSession(c.PID())
		<-c.Done()
		return nil, state{}, err
	}
	return c, st, nil
}

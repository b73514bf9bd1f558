// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host/step"
)

// stuck is the process runtime with an engine that can hang: it then neither stops
// a function nor removes its resources.
type stuck struct {
	*process.Runtime
	hangs atomic.Bool
}

const kindStuck step.Kind = "stuck-engine"

var errStuck = errors.New("the engine hangs")

func (s *stuck) Removers() step.Removers {
	return step.Removers{kindStuck: func(context.Context, step.Resource) error {
		if s.hangs.Load() {
			return errStuck
		}
		return nil
	}}
}

func (s *stuck) Sandbox(spec runtime.Spec) (*runtime.SandboxBuild, error) {
	b, err := s.Runtime.Sandbox(spec)
	if err == nil {
		b.Steps = append(b.Steps, step.Step{
			Name: "ask the engine", Makes: []step.Resource{{Kind: kindStuck, Name: spec.Function.Name}},
			Do: func(context.Context) error { return nil },
		})
	}
	return b, err
}

func (s *stuck) Start(ctx context.Context, spec runtime.Spec, out runtime.Output) (runtime.Instance, error) {
	i, err := s.Runtime.Start(ctx, spec, out)
	return &stuckInstance{Instance: i, runtime: s}, err
}

type stuckInstance struct {
	runtime.Instance
	runtime *stuck
}

func (i *stuckInstance) Wait() (int, error) {
	code, err := i.Instance.Wait()
	if i.runtime.hangs.Load() {
		err = errors.Join(err, errStuck)
	}
	return code, err
}

// TestAnEngineThatHangsIsNamed: the supervisor ends and says so; all but the
// engine's resources goes. gc removes the rest once the engine answers.
func TestAnEngineThatHangsIsNamed(t *testing.T) {
	n := newNode(t)
	rt := &stuck{Runtime: process.New()}
	n.Runtimes = []runtime.Runtime{rt}
	c, p := pair(t)
	l, err := n.Create(context.Background(), "run", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Supervise()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	if err := s.Settled(ctx, time.Millisecond); err != nil {
		t.Error(err)
	}
	rt.hangs.Store(true)
	stop()
	if err := <-stopped; !errors.Is(err, errStuck) || !strings.Contains(err.Error(), "stop function a: ") {
		t.Errorf("the supervisor says %v", err)
	}
	sandbox, cgroup := l.State.Sandboxes["a"], n.Cgroup(c.Name)
	if err := l.Remove(context.Background()); !errors.Is(err, errStuck) || !strings.Contains(err.Error(), "dray gc") {
		t.Errorf("its removal says %v", err)
	}
	if there, err := cgroup.Exists(); there || err != nil || sandbox.Netns.Exists() {
		t.Errorf("while the engine hangs, the cgroup exists: %v, %v, the namespace: %v", there, err, sandbox.Netns.Exists())
	}
	if found, err := n.inspect(c.Name); err != nil || found.Condition != Leftover {
		t.Errorf("afterwards it is %+v, %v", found, err)
	}
	rt.hangs.Store(false)
	if removed, err := n.Collect(context.Background()); err != nil || len(removed) != 1 {
		t.Errorf("gc removed %v, %v", removed, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// asked is a runtime that knows what its functions' Check returns.
type asked struct {
	runtime.Runtime
	name  chain.RuntimeName
	fault map[string]error
	times int
}

func (a *asked) Name() chain.RuntimeName { return a.name }

func (a *asked) Check(_ context.Context, s runtime.Spec) error {
	a.times++
	return a.fault[s.Function.Name]
}

// TestWhatCannotBeAskedIsNotGone: nothing is known to be wrong, and the command ends.
func TestWhatCannotBeAskedIsNotGone(t *testing.T) {
	ctx := context.Background()
	rt := &asked{name: chain.RuntimeProcess}
	l := &Live{node: &Node{StateDir: t.TempDir(), Runtimes: []runtime.Runtime{rt}}}
	l.Chain, l.State.Plan = planned(t, pairYAML)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Wrong(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	rt.fault = map[string]error{"a": unix.EMFILE}
	if w, err := l.Wrong(ctx); !errors.Is(err, unix.EMFILE) || len(w.Sandboxes)+len(w.Ended) > 0 {
		t.Errorf("%+v, %v", w, err)
	}
	rt.fault = map[string]error{"a": &runtime.GoneError{Err: unix.ESRCH}, "b": &runtime.GoneError{Err: unix.ESRCH, Ended: true}}
	if w, err := l.Wrong(ctx); err != nil || len(w.Sandboxes) != 1 || w.Sandboxes["a"] == "" || len(w.Ended) != 1 || w.Ended["b"] == "" {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestAnEngineThatHangsIsAskedOnce for all functions of a chain.
func TestAnEngineThatHangsIsAskedOnce(t *testing.T) {
	rt := &asked{name: chain.RuntimeDocker, fault: map[string]error{"a": context.DeadlineExceeded, "b": context.DeadlineExceeded}}
	l := &Live{node: &Node{StateDir: t.TempDir(), Runtimes: []runtime.Runtime{rt}}}
	l.Chain, l.State.Plan = planned(t, strings.ReplaceAll(pairYAML, "runtime: process", "runtime: docker, image: i"))
	faults := l.Check(context.Background())
	if len(faults) != 2 || !errors.Is(faults["b"], context.DeadlineExceeded) || rt.times != 1 {
		t.Errorf("asked %d times: %v", rt.times, faults)
	}
}

// TestALostNamespaceIsMadeAgain with the function and its link.
func TestALostNamespaceIsMadeAgain(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	ctx := context.Background()
	l, err := n.OpenLocked(ctx, "pair")
	testenv.Must(t, err)
	testenv.Must(t, unix.Unmount(l.State.Sandboxes["a"].Netns.Path, unix.MNT_DETACH))
	wrong, err := l.Wrong(ctx)
	if err != nil || len(wrong.Sandboxes) != 1 || !strings.Contains(wrong.Sandboxes["a"], "lost its network namespace") {
		t.Errorf("%+v, %v", wrong, err)
	}
	c, p := planned(t, pairYAML)
	changes := l.Difference(c, p, wrong)
	if len(changes) != 2 || changes[0].Action != Add || changes[1].Action != Replace {
		t.Errorf("%+v", changes)
	}
	testenv.Must(t, l.Apply(ctx, c, []byte(pairYAML), p, changes, 0))
	if wrong, err := l.Wrong(ctx); err != nil || len(wrong.Sandboxes)+len(wrong.Commands)+len(wrong.Links) > 0 {
		t.Errorf("then %+v, %v", wrong, err)
	}
	testenv.Must(t, l.Release())
	wantPings(t, n, "10.1.0.2")
}

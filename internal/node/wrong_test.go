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

// TestDifferenceOfFaults: what is wrong becomes as the file says if that can be. If not it is
// kept, and refuses no other change.
func TestDifferenceOfFaults(t *testing.T) {
	const command = `process, command: [sleep, "1000"]`
	native := func(end string) string {
		return strings.Replace(pairYAML, "10.1.0."+end+"/24", "10.1.0."+end+"/24, face: native", 1)
	}
	external := strings.Replace(pairYAML, command, "external, external: {pid: 7}", 1)
	down, gone := Wrong{Links: map[string]string{"ab": "port b.p0 is down"}}, Wrong{Sandboxes: map[string]string{"a": "it is gone"}, Commands: map[string]string{"a": "it has ended"}}
	for name, test := range map[string]struct {
		from, to string
		wrong    Wrong
		want     string
	}{
		"an interface":                    {pairYAML, pairYAML, down, "replace link ab: port b.p0 is down"},
		"next to a native port":           {native("1"), native("1"), down, "keep link ab: port b.p0 is down; it cannot be made again while the chain is up: function a has opened its native port p0"},
		"with another change":             {native("1"), native("1") + "paths: [{name: p, from: a.p0, to: b.p0, requires: {latency: 1ms}}]\n", down, "keep link ab: port b.p0 is down; it cannot be made again while the chain is up: function a has opened its native port p0, add path p"},
		"with a change of the link":       {native("1"), strings.Replace(native("1"), "transport: bridge", "transport: bridge, requires: {latency: 1ms}", 1), down, "keep link ab, update link ab"},
		"of a machine":                    {strings.Replace(pairYAML, command, "vm", 1), strings.Replace(pairYAML, command, "vm", 1), down, "keep link ab: port b.p0 is down; it cannot be made again while the chain is up: the virtual machine of function a"},
		"a function":                      {pairYAML, pairYAML, gone, "add function a: it is gone, replace link ab: it is gone"},
		"a function with a native port":   {native("1"), native("1"), gone, "add function a: it is gone, replace link ab: it is gone"},
		"a function at a native port":     {native("2"), native("2"), gone, "keep function a: it is gone; it cannot be made again while the chain is up: function b has opened its native port p0"},
		"a function that is removed":      {native("2"), native("2"), Wrong{Sandboxes: map[string]string{"x": "it is gone"}}, ""},
		"an external function":            {external, external, Wrong{Ended: map[string]string{"a": "it has ended"}}, "keep function a: it has ended"},
		"an external function, elsewhere": {external, strings.Replace(external, "pid: 7", "pid: 8", 1), Wrong{Ended: map[string]string{"a": "it has ended"}}, "add function a: it has ended, replace link ab: it has ended"},
	} {
		l := &Live{State: State{Sandboxes: map[string]*runtime.Sandbox{"a": {}, "b": {}}}}
		l.Chain, l.State.Plan = planned(t, test.from)
		c, p := planned(t, test.to)
		var got []string
		for _, change := range l.Difference(c, p, test.wrong) {
			text := strings.TrimSpace(string(change.Action)+" "+change.What+" "+change.Name) + change.Refused
			if change.Why != "" && test.want != "keep link ab, update link ab" {
				why, _, _ := strings.Cut(change.Why, " when it")
				why, _, _ = strings.Cut(why, " got its")
				text += ": " + why
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s:\n%q, want\n%q", name, text, test.want)
		}
	}
}

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

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/veth"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// pairYAML is [ a ]──ab──[ b ] with the process runtime over a bridge.
const pairYAML = `
apiVersion: drayage/v1
kind: Chain
name: pair
functions:
  - {name: a, runtime: process, command: [sleep, "1000"], ports: [{name: p0, ip: 10.1.0.1/24, mac: "02:00:00:00:01:01"}]}
  - {name: b, runtime: process, command: [sleep, "1000"], ports: [{name: p0, ip: 10.1.0.2/24, mac: "02:00:00:00:01:02"}]}
links:
  - {name: ab, ends: [a.p0, b.p0], transport: bridge}
`

func newNode(t *testing.T) *Node {
	t.Helper()
	testenv.Root(t)
	state, err := os.MkdirTemp("/run", "dray-test-node-")
	if err != nil {
		t.Fatal(err)
	}
	testenv.NoLeaks(t, filepath.Base(state))
	t.Cleanup(func() {
		for _, name := range []string{fileLocked, dirDamaged, dirFailed} {
			if err := os.RemoveAll(filepath.Join(state, name)); err != nil {
				t.Error(err)
			}
		}
		if err := os.Remove(state); err != nil {
			t.Error(err)
		}
	})
	return &Node{
		StateDir:   state,
		Transports: []transport.Driver{veth.New(), bridge.New()},
		Runtimes:   []runtime.Runtime{process.New()},
	}
}

func pair(t *testing.T) (*chain.Chain, *plan.Plan) {
	t.Helper()
	c, err := chain.Parse("pair.yaml", []byte(pairYAML))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Chain: c.Name}
	for _, f := range c.Functions {
		p.Functions = append(p.Functions, plan.Function{Name: f.Name, Runtime: f.Runtime})
	}
	l := plan.Link{Name: "ab", Transport: "bridge", MTU: 1500}
	for _, f := range c.Functions {
		port := f.Ports[0]
		l.Ends = append(l.Ends, plan.End{Function: f.Name, Port: port.Name, IP: port.IP, MAC: port.MAC, MTU: port.MTU, Queues: port.Queues})
	}
	p.Links = []plan.Link{l}
	return c, p
}

// commit brings the pair up.
func commit(t *testing.T, n *Node, c *chain.Chain, p *plan.Plan) *Live {
	t.Helper()
	l, err := n.Create(context.Background(), "up", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestClaimedCPUsStayAChainsOwn: CPUs of functions, and CPUs on which links'
// processes poll.
func TestClaimedCPUsStayAChainsOwn(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	p.Functions[0].CPUs, p.Links[0].CPUs = []int{0}, []int{1}
	commit(t, n, c, p)
	defer func() {
		if _, err := n.Down(ctx, "pair"); err != nil {
			t.Error(err)
		}
	}()
	if claimed, err := n.claims(""); err != nil || !slices.Equal(claimed.cpus["pair"], []int{0, 1}) {
		t.Errorf("claimed: %v, %v", claimed, err)
	}
	for name, claim := range map[string]plan.Plan{
		"CPU 0": {Functions: []plan.Function{{Name: "a", CPUs: []int{0}}}},
		"CPU 1": {Links: []plan.Link{{Name: "ab", CPUs: []int{1}}}},
	} {
		other := *c
		other.Name = "other"
		if _, err := n.Create(ctx, "up", &other, []byte(pairYAML), &claim); err == nil || !strings.Contains(err.Error(), name+" was given to chain pair") {
			t.Errorf("%s is claimed twice: %v", name, err)
		}
	}
}

func TestACommittedChainStaysUntilDown(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	l, err := n.Create(ctx, "up", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := n.inspect("pair"); err != nil || found.Condition != Busy {
		t.Errorf("while it is being made: %+v, %v", found, err)
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	if removed, err := n.Collect(ctx); err != nil || len(removed) > 0 {
		t.Errorf("gc removed %v, %v", removed, err)
	}
	var exists *ExistsError
	if _, err := n.Create(ctx, "up", c, []byte(pairYAML), p); !errors.As(err, &exists) {
		t.Errorf("a second up: %v", err)
	}
	reopened, err := n.Open("pair")
	if err != nil {
		t.Fatal(err)
	}
	if !reopened.State.Sandboxes["a"].Netns.Exists() {
		t.Error("the sandbox that the state names does not exist")
	}
	if _, err := n.Down(ctx, "pair"); err != nil {
		t.Fatal(err)
	}
	if found, err := n.inspect("pair"); err != nil || found.Condition != Absent {
		t.Errorf("after down: %+v, %v", found, err)
	}
}

func TestWhatADeadOwnerLeftIsCollected(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	l, err := n.Create(context.Background(), "up", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	// A process that dies gives up its locks and nothing else.
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	removed, err := n.Collect(context.Background())
	if err != nil || len(removed) != 1 || removed[0].Condition != Leftover {
		t.Errorf("gc removed %v, %v", removed, err)
	}
}

func TestTheNextUpClearsWhatADeadOwnerLeft(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	for range 2 {
		l, err := n.Create(ctx, "up", c, []byte(pairYAML), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Collect(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestAFailureAtAnyStepRemovesEverything(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	failEachStep(t, n, c, p)
}

// failEachStep fails each step of making a chain in turn, before and after it acts,
// and checks that nothing is left.
func failEachStep(t *testing.T, n *Node, c *chain.Chain, p *plan.Plan) {
	t.Helper()
	ctx := context.Background()
	var names []string
	n.Fault = func(s step.Step, phase step.Phase) error {
		if phase == step.Before {
			names = append(names, s.Name)
		}
		return nil
	}
	l, err := n.Create(ctx, "up", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	injected := errors.New("injected")
	for i, name := range names {
		for _, phase := range []step.Phase{step.Before, step.After} {
			seen := 0
			n.Fault = func(_ step.Step, at step.Phase) error {
				if at != phase {
					return nil
				}
				seen++
				if seen == i+1 {
					return injected
				}
				return nil
			}
			if _, err := n.Create(ctx, "up", c, []byte(pairYAML), p); !errors.Is(err, injected) {
				t.Errorf("failing %s %q: error %v", phase, name, err)
			}
			if found, err := n.inspect(c.Name); err != nil || found.Condition != Absent {
				t.Errorf("failing %s %q left %+v, %v", phase, name, found, err)
			}
		}
	}
}

func TestANameThatIsAPathIsRefused(t *testing.T) {
	n := newNode(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(n.StateDir, outside)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{rel, "..", ".", "", "/etc", "a/b"} {
		if _, err := n.Down(context.Background(), name); err == nil {
			t.Errorf("down %q succeeded", name)
		}
		if _, err := n.Open(name); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestARestartOfTheHostLosesAChain(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx := context.Background()
	l, err := n.Create(ctx, "up", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	l.State.Boot = "another boot"
	if err := writeJSON(filepath.Join(n.dir("pair"), fileState), l.State); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	if found, err := n.inspect("pair"); err != nil || found.Condition != Lost {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := n.Open("pair"); err == nil {
		t.Error("a lost chain was opened")
	}
	if _, err := n.Down(ctx, "pair"); err != nil {
		t.Fatal(err)
	}
}

func TestSupervisedFunctionsRunAndStop(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l, err := n.Create(ctx, "run", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	s, err := l.Supervise()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	if err := s.Settled(ctx, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	functions, supervised, err := l.Status()
	if err != nil || !supervised || len(functions) != 2 || functions[0].Phase != PhaseRunning {
		t.Errorf("status %+v, supervised %v, %v", functions, supervised, err)
	}
	first := functions[0].Process
	stop()
	<-done
	if first.Alive() {
		t.Error("a function outlived its supervisor")
	}
}

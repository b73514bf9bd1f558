// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// planned is a test chain, with a plan that has its addresses.
func planned(t *testing.T, text string) (*chain.Chain, *plan.Plan) {
	t.Helper()
	c, err := chain.Parse("pair.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Chain: c.Name}
	for _, f := range c.Functions {
		p.Functions = append(p.Functions, plan.Function{Name: f.Name, Runtime: f.Runtime})
	}
	for _, cl := range c.Links {
		l := plan.Link{Name: cl.Name, Transport: cl.Transport, MTU: 1500, Requires: cl.Requires}
		for _, e := range cl.Ends {
			o := port(c, e.Function, e.Port)
			l.Ends = append(l.Ends, plan.End{Function: e.Function, Port: e.Port, Face: o.Face, IP: o.IP, MAC: o.MAC, MTU: o.MTU, Queues: o.Queues})
		}
		p.Links = append(p.Links, l)
	}
	return c, p
}

// grownYAML is the pair with a third function, over a link of its own.
var grownYAML = strings.NewReplacer(
	`mac: "02:00:00:00:01:02"}]}`, `mac: "02:00:00:00:01:02"}, {name: p1, ip: 10.2.0.1/24, mac: "02:00:00:00:02:01"}]}`+
		"\n  - {name: c, runtime: process, command: [sleep, \"1000\"], ports: [{name: p0, ip: 10.2.0.2/24, mac: \"02:00:00:00:02:02\"}]}",
	"links:\n", "links:\n  - {name: bc, ends: [b.p1, c.p0], transport: veth}\n").Replace(pairYAML)

// supervisedPair is the running pair, with this process supervising.
func supervisedPair(t *testing.T, n *Node) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c, p := planned(t, pairYAML)
	commit(t, n, c, p)
	l, err := n.Open("pair")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Supervise()
	if err != nil {
		t.Fatal(err)
	}
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	signal.Notify(signals, ReloadSignal)
	go func() {
		for range signals {
			s.Reload()
		}
	}()
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l, err := n.OpenLocked(context.Background(), "pair")
		if err == nil {
			err = l.Remove(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := s.Settled(ctx, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
}

// applied applies a changed pair, and returns the differences.
func applied(t *testing.T, n *Node, text string) (string, error) {
	t.Helper()
	ctx := context.Background()
	c, p := planned(t, text)
	l, err := n.OpenLocked(ctx, "pair")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	changes := l.Difference(c, p, Wrong{})
	for _, change := range changes {
		names = append(names, strings.TrimSpace(string(change.Action)+" "+change.What+" "+change.Name+" "+change.Refused))
	}
	err = l.Apply(ctx, c, []byte(text), p, changes, 50*time.Millisecond)
	return strings.Join(names, ", "), errors.Join(err, l.Release())
}

// applyPastFaults applies a change until it completes, failing it once at each step.
func applyPastFaults(t *testing.T, n *Node, at step.Phase, text string) {
	t.Helper()
	injected := errors.New("injected")
	failures := 0
	for fail := 1; ; fail++ {
		seen := 0
		n.Fault = func(_ step.Step, phase step.Phase) error {
			if phase == at {
				seen++
			}
			if phase == at && seen == fail {
				return injected
			}
			return nil
		}
		what, err := applied(t, n, text)
		if err == nil {
			break
		}
		failures++
		if !errors.Is(err, injected) {
			t.Fatalf("failing step %d: %s: %v", fail, what, err)
		}
	}
	n.Fault = nil
	if failures < 4 {
		t.Errorf("only %d steps could fail", failures)
	}
}

// A change that fails at any step can be applied again, and completes.
func TestApplyGoesOnAfterAFailure(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	for _, at := range []step.Phase{step.Before, step.After} {
		applyPastFaults(t, n, at, grownYAML)
		l, err := n.Open("pair")
		if err != nil {
			t.Fatal(err)
		}
		if functions, _, err := l.Status(); err != nil || len(functions) != 3 || functions[2].Phase != PhaseRunning || functions[0].Restarts > 0 {
			t.Errorf("%+v, %v", functions, err)
		}
		if wrong := l.LinkFaults(); len(wrong) > 0 {
			t.Errorf("%v", wrong)
		}
		what, err := applied(t, n, pairYAML)
		if want := "remove function c, update function b, remove link bc"; err != nil || what != want {
			t.Fatalf("%q, want %q: %v", what, want, err)
		}
	}
}

func TestDifference(t *testing.T) {
	l := &Live{}
	l.Chain, l.State.Plan = planned(t, pairYAML)
	l.State.Sandboxes = map[string]*runtime.Sandbox{"a": {}, "b": {}}
	for _, c := range []struct{ from, to, want string }{
		{"links:", "links:", ""},
		{"links:", "paths: [{name: p, from: a.p0, to: b.p0, requires: {latency: 1ms}}]\nlinks:", "add path p"},
		{"transport: bridge}", "transport: bridge, requires: {latency: 1ms}}", "update link ab"},
		{"transport: bridge}", "transport: veth}", "replace link ab"},
		{"10.1.0.2/24", "10.1.0.3/24", "update function b, replace link ab"},
		{`command: [sleep, "1000"]`, `command: [sleep, "1000"], env: {A: b}`, "restart function a"},
		{`command: [sleep, "1000"]`, `command: [sleep, "1000"], pids: 7`, "function a pids cannot change while the function is up"},
		{"name: ab", "name: other", "remove link ab, add link other"},
		{"10.1.0.2/24", "10.1.0.2/24, face: native", "update function b, link ab function b has opened its native port p0 when it started"},
	} {
		changed, p := planned(t, strings.Replace(pairYAML, c.from, c.to, 1))
		var got []string
		for _, change := range l.Difference(changed, p, Wrong{}) {
			got = append(got, strings.TrimSpace(strings.TrimSpace(string(change.Action)+" "+change.What+" "+change.Name)+" "+change.Refused))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s → %s: %q, want %q", c.from, c.to, text, c.want)
		}
	}
}

// Queues of ports that queue in user space change under traffic; none begin or end to.
func TestDifferenceOfQueues(t *testing.T) {
	native := strings.NewReplacer("/24,", "/24, face: native,", "transport: bridge", "transport: shm").Replace(pairYAML)
	queued := func(limit string, q *chain.Qdisc) (*chain.Chain, *plan.Plan) {
		c, p := planned(t, strings.Replace(native, "transport: shm", "transport: shm"+limit, 1))
		p.Links[0].Shape = q
		for i := range p.Links[0].Ends {
			p.Links[0].Ends[i].Backend = plan.BackendShm
		}
		return c, p
	}
	none := func() (*chain.Chain, *plan.Plan) { return queued("", nil) }
	slow := func() (*chain.Chain, *plan.Plan) {
		return queued(", qos: {qdisc: tbf, rate: 1Mbps}", &chain.Qdisc{Kind: "tbf", Rate: 1e6})
	}
	fast := func() (*chain.Chain, *plan.Plan) {
		return queued(", qos: {qdisc: tbf, rate: 2Mbps}", &chain.Qdisc{Kind: "tbf", Rate: 2e6})
	}
	const refused = "has opened its native port"
	for _, test := range []struct {
		name     string
		from, to func() (*chain.Chain, *plan.Plan)
		want     string
	}{
		{"another rate", slow, fast, "move"},
		{"the first queues", none, slow, refused},
		{"no queues any more", slow, none, refused},
	} {
		l := &Live{}
		l.Chain, l.State.Plan = test.from()
		l.State.Sandboxes = map[string]*runtime.Sandbox{"a": {}, "b": {}}
		c, p := test.to()
		got := l.Difference(c, p, Wrong{})
		if len(got) != 1 || !strings.Contains(string(got[0].Action)+got[0].Refused, test.want) {
			t.Errorf("%s: %+v, want %q", test.name, got, test.want)
		}
	}
}

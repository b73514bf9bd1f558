// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/veth"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// TestMain lets the test program be the broker, as dray is.
func TestMain(m *testing.M) {
	if len(os.Args) >= 3 && (os.Args[1] == "supervise" || os.Args[1] == LogKeeperCommand) {
		if err := supervisorMain(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "daemon" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		dir := filepath.Join(os.Getenv("DRAY_STATE"), os.Args[2], brokerFolder)
		if err := broker.Serve(ctx, broker.Options{Dir: dir, Log: os.Stderr}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// nativePair is the pair with native ports, over shared memory and over veth.
func nativePair(t *testing.T) (*Node, *chain.Chain, *plan.Plan) {
	t.Helper()
	n := newNode(t)
	n.Transports = []transport.Driver{shm.New(), native.Wrap(veth.New())}
	c, p := pair(t)
	for i := range c.Functions {
		port := &c.Functions[i].Ports[0]
		port.Face = chain.FaceNative
		second := *port
		second.Name, second.MAC = "p1", chain.MAC(fmt.Sprintf("02:00:00:00:02:%02x", i+1))
		c.Functions[i].Ports = append(c.Functions[i].Ports, second)
	}
	p.Links = nil
	for j, transport := range []string{"shm", "veth"} {
		l := plan.Link{Name: "over-" + transport, Transport: transport, MTU: 1500}
		for _, f := range c.Functions {
			port := f.Ports[j]
			l.Ends = append(l.Ends, plan.End{Function: f.Name, Port: port.Name, Face: port.Face, MAC: port.MAC, MTU: 1500, Queues: 1})
		}
		p.Links = append(p.Links, l)
	}
	return n, c, p
}

// opens checks that every native port of the chain can be opened.
func opens(t *testing.T, l *Live) {
	t.Helper()
	for _, f := range l.Chain.Functions {
		for _, port := range f.Ports {
			conn, err := net.Dial("unixpacket", filepath.Join(l.State.Sandboxes[f.Name].Ports, port.Name))
			if err != nil {
				t.Errorf("port %s of %s: %v", port.Name, f.Name, err)
				continue
			}
			conn.Close()
		}
	}
}

// runningBroker waits until a broker other than before runs.
func runningBroker(t *testing.T, l *Live, before *Broker) *Broker {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		b, err := l.Broker()
		if err != nil {
			t.Fatal(err)
		}
		if b == nil || !b.Process.Alive() || before != nil && b.Process == before.Process {
			continue
		}
		if client, err := broker.Dial(l.BrokerDir()); err == nil {
			if links, err := client.Status(context.Background()); err == nil && len(links) == 2 {
				return b
			}
		}
	}
	t.Fatalf("no broker runs: %s", tail(l.BrokerLog(), 5))
	return nil
}

func TestABrokerThatEndsIsStartedAgain(t *testing.T) {
	n, c, p := nativePair(t)
	l, err := n.Create(context.Background(), "run", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	opens(t, l)
	first := runningBroker(t, l, nil)
	first.Process.Signal(syscall.SIGKILL)
	second := runningBroker(t, l, first)
	if second.Restarts != 1 {
		t.Errorf("%d restarts", second.Restarts)
	}
	opens(t, l)
	// The same process may supervise the chain later, as dray run does.
	s, err := l.Supervise()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	if err := s.Settled(ctx, 10*time.Millisecond); err != nil {
		t.Error(err)
	}
	second.Process.Signal(syscall.SIGKILL)
	third := runningBroker(t, l, second)
	opens(t, l)
	stop()
	<-done
	if !third.Process.Alive() {
		t.Error("the broker ended with its supervisor")
	}
	if err := l.Remove(context.Background()); err != nil {
		t.Fatal(err)
	}
	if third.Process.Alive() {
		t.Error("the broker outlived its chain")
	}
}

func TestNobodyRestartsTheBrokerOfAReleasedChain(t *testing.T) {
	n, c, p := nativePair(t)
	l, err := n.Create(context.Background(), "up", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	first := runningBroker(t, l, nil)
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	first.Process.Signal(syscall.SIGKILL)
	if err := first.Process.AwaitEnd(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The kernel may close a dead process's sockets with some delay.
	for deadline := time.Now().Add(patience); l.LinkFaults()["over-shm"] == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("status never reports that the broker has ended")
		}
	}
	// It is not committed: all of it goes, and no process needs its links.
	if removed, err := n.Collect(context.Background()); err != nil || len(removed) != 1 {
		t.Errorf("gc removed %v, %v", removed, err)
	}
}

func TestAFailureAtAnyStepOfANativeChainRemovesEverything(t *testing.T) {
	n, c, p := nativePair(t)
	failEachStep(t, n, c, p)
}

func TestAJournalCannotNameTheBrokerOfAnother(t *testing.T) {
	n := newNode(t)
	n.Transports = []transport.Driver{shm.New()}
	write(t, n.journalFile("evil"), `{"make":[{"kind":"broker-link","path":"/run/dray/other/broker","name":"f1u"}]}`+"\n")
	removed, err := n.Collect(context.Background())
	if err != nil || len(removed) != 1 || len(removed[0].Left) != 1 || !strings.Contains(removed[0].Left[0], "does not belong to the chain") {
		t.Errorf("gc removed %+v, %v", removed, err)
	}
}

// kinds is the broker's report of each link.
func kinds(t *testing.T, l *Live) map[string]string {
	t.Helper()
	client, err := broker.Dial(l.BrokerDir())
	if err != nil {
		t.Fatal(err)
	}
	links, err := client.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, link := range links {
		kinds[link.Name] = link.Kind
	}
	return kinds
}

// over is the first link of the pair, planned over a transport.
func over(l *Live, transport string) plan.Link {
	to := *l.State.Plan.Link("over-shm")
	to.Transport = transport
	return to
}

// directories lists link files in the chain's directory.
func directories(t *testing.T, l *Live) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(l.dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestALinkMovesBetweenTransports(t *testing.T) {
	n, c, p := nativePair(t)
	ctx := context.Background()
	commit(t, n, c, p)
	l, err := n.OpenLocked(ctx, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	first := runningBroker(t, l, nil)
	for _, at := range []struct{ transport, kind, directories string }{
		{"veth", broker.KindNetdev, "over-shm.1 over-veth"},
		{"veth", broker.KindNetdev, "over-shm.2 over-veth"},
		{"shm", broker.KindShm, "over-shm.3 over-veth"},
	} {
		if err := l.Move(ctx, over(l, at.transport)); err != nil {
			t.Fatal(err)
		}
		if got := kinds(t, l)["over-shm"]; got != at.kind {
			t.Errorf("moved to %s, and the broker serves it by %s", at.transport, got)
		}
		if got := directories(t, l); got != at.directories {
			t.Errorf("moved to %s: directories %s", at.transport, got)
		}
		opens(t, l)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if again, err := n.Open(c.Name); err != nil || again.State.Plan.Link("over-shm").Transport != "shm" || again.State.Moves["over-shm"].At != 3 {
		t.Errorf("saved state: %+v, %v", again, err)
	}
	if b, err := l.Broker(); err != nil || b.Process != first.Process {
		t.Errorf("another broker serves the links: %+v, %v", b, err)
	}
	if _, err := n.Down(ctx, c.Name); err != nil {
		t.Fatal(err)
	}
}

func TestAMoveThatFailsLeavesTheLinkWhereItWas(t *testing.T) {
	n, c, p := nativePair(t)
	ctx := context.Background()
	commit(t, n, c, p)
	l, err := n.OpenLocked(ctx, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	injected, tried := errors.New("injected"), 0
	for target := 1; ; target++ {
		seen, hit := 0, false
		n.Fault = func(step.Step, step.Phase) error {
			if seen++; seen == target {
				hit = true
				return injected
			}
			return nil
		}
		err := l.Move(ctx, over(l, "veth"))
		if !hit { // there are no more steps
			if err != nil {
				t.Error(err)
			}
			break
		}
		tried++
		if !errors.Is(err, injected) {
			t.Fatalf("fault %d gave %v", target, err)
		}
		if kind, dirs := kinds(t, l)["over-shm"], directories(t, l); kind != broker.KindShm || dirs != "over-shm over-veth" {
			t.Errorf("after fault %d: kind %s, directories %s", target, kind, dirs)
		}
		opens(t, l)
	}
	if tried < 10 {
		t.Errorf("%d faults were tried", tried)
	}
	if got := kinds(t, l)["over-shm"]; got != broker.KindNetdev {
		t.Errorf("after all faults it moves, to %s", got)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Down(ctx, c.Name); err != nil {
		t.Fatal(err)
	}
}

func TestALinkWithAnInterfaceDoesNotMove(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	l, err := n.Create(context.Background(), "run", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	to := *l.State.Plan.Link("ab")
	to.Transport = "veth"
	if err := l.Move(context.Background(), to); err == nil || !strings.Contains(err.Error(), "use face: native") {
		t.Errorf("error %v", err)
	}
	if err := l.Remove(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestABrokerThatIsKilledOftenIsSoonBack: functions open no port without a broker.
func TestABrokerThatIsKilledOftenIsSoonBack(t *testing.T) {
	n, c, p := nativePair(t)
	l, err := n.Create(context.Background(), "run", c, []byte(pairYAML), p)
	if err != nil {
		t.Fatal(err)
	}
	b := runningBroker(t, l, nil)
	const kills = 12 // pauses that double would have come to 102 s
	var first, longest time.Duration
	for i := range kills {
		killed := time.Now()
		b.Process.Signal(syscall.SIGKILL)
		b = runningBroker(t, l, b)
		longest = max(longest, time.Since(killed))
		if i == 0 {
			first = longest // without a pause
		}
	}
	t.Logf("measured: after %d kills the longest time without a broker is %.1f s; after one it is %.1f s", kills, longest.Seconds(), first.Seconds())
	if err := l.Remove(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyADamagedFileMakesTheBrokerUnknown, and only if no broker runs another may start.
func TestOnlyADamagedFileMakesTheBrokerUnknown(t *testing.T) {
	n := &Node{StateDir: t.TempDir()}
	l := &Live{Chain: &chain.Chain{Name: "c"}, dir: n.dir("c"), node: n}
	path := filepath.Join(l.dir, fileBroker)
	testenv.Must(t, os.Mkdir(l.dir, 0o700))
	testenv.Must(t, writeJSON(path, Broker{Restarts: 7}))
	end := testenv.Unreadable(t, path)
	if b, err := l.Broker(); b != nil || err == nil || errors.Is(err, errNoBroker) {
		t.Errorf("for now it cannot be read: %+v, %v", b, err)
	}
	end()
	if b, err := l.Broker(); err != nil || b.Restarts != 7 {
		t.Errorf("then: %+v, %v", b, err)
	}
	damages["garbage"](t, path)
	if b, err := l.Broker(); b != nil || !errors.Is(err, errNoBroker) {
		t.Errorf("it is damaged: %+v, %v", b, err)
	}
}

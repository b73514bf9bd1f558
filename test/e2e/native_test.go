// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/docker/dockertest"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/test/testenv"
)

// generator is draygen at a path that a container over the host's root sees.
func generator(t *testing.T) string {
	t.Helper()
	return filepath.Join(visible(t, "draygen"), "draygen")
}

// passed is a sink's result for a stream.
type passed struct {
	Received, Lost, Corrupt, Duplicates, Reordered int
	Link                                           struct {
		Kind       string
		Generation int
	}
}

// stream sends packets from function a to function b of a running chain, with
// programs inside the functions. meanwhile, if given, is called once the sink is
// ready and the sender has begun.
func (b *bench) stream(chain, draygen string, packets, rate string, meanwhile func()) passed {
	b.t.Helper()
	return b.between(chain, draygen, "a.p0", "b.p0", packets, rate, meanwhile)
}

// between is stream from one port to another.
func (b *bench) between(chain, draygen, source, destination, packets, rate string, meanwhile func()) passed {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	from, fromPort, _ := strings.Cut(source, ".")
	to, toPort, _ := strings.Cut(destination, ".")
	sink := b.command(ctx, "exec", chain, to, "--", draygen, "sink", "--port", "dray:"+toPort, "--once", "--duration", "100s")
	var errs bytes.Buffer
	sink.Stderr = &errs
	out, err := sink.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := sink.Start(); err != nil {
		b.t.Fatal(err)
	}
	defer func() { cancel(); _ = sink.Wait() }()
	lines := bufio.NewReader(out)
	if ready, err := lines.ReadString('\n'); err != nil {
		b.t.Fatalf("the sink is not ready: %v: %s%s", err, ready, errs.String())
	}
	sent := make(chan result, 1)
	go func() {
		sent <- b.dray("exec", chain, from, "--", draygen, "send", "--port", "dray:"+fromPort, "--check",
			"--packets", packets, "--rate", rate, "--catch-up", "60s", "--peer-timeout", "100s")
	}()
	if meanwhile != nil {
		meanwhile()
	}
	if r := <-sent; r.Code != 0 {
		b.t.Fatalf("the sender: %s", r)
	}
	var p passed
	line, err := lines.ReadString('\n')
	if err != nil || json.Unmarshal([]byte(line), &p) != nil {
		b.t.Fatalf("the sink ends with %q, %v: %s", line, err, errs.String())
	}
	return p
}

// A chain of native ports passes every packet whole, in order and once, between
// unprivileged functions.
func TestNativePorts(t *testing.T) {
	draygen := generator(t)
	const packets = 20000
	for name, test := range map[string]struct {
		pair pair
		kind string // of the link, as libdray reports
	}{
		"runc":             {pair{Name: "native-runc", Runtime: "runc"}, "shm"},
		"process":          {pair{Name: "native-process", Runtime: "process"}, "shm"},
		"docker":           {pair{Name: "native-docker", Runtime: "docker", Image: "dray-e2e-native"}, "shm"},
		"no memory shared": {pair{Name: "native-veth", Runtime: "runc", Isolation: "no-shared-memory"}, "netdev"},
		"through a bridge": {pair{Name: "native-bridge", Runtime: "runc", Transport: "bridge"}, "netdev"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if name == "docker" {
				client := dockertest.Start(t)
				dockertest.Import(t, client, test.pair.Image, draygen)
				b.env = []string{"DOCKER_HOST=" + client.Host}
			}
			p := test.pair
			p.Face, p.Command = "native", `[sleep, "1000"]`
			b.want(0, "up", b.file(p.yaml()))
			defer b.want(0, "down", p.Name)
			got := b.stream(p.Name, draygen, "20000", "20kpps", nil)
			if got.Link.Kind != test.kind || got.Corrupt+got.Duplicates+got.Reordered > 0 || got.Received == 0 {
				t.Errorf("the sink saw %+v", got)
			}
			if test.kind == "shm" && got.Received != packets { // the kernel may drop
				t.Errorf("%d of %d packets arrived", got.Received, packets)
			}
		})
	}
}

// A chain's broker dies under traffic: the supervisor starts another, which
// adopts the link, and nothing is lost.
func TestBrokerDiesUnderTraffic(t *testing.T) {
	t.Parallel()
	draygen := generator(t)
	b := newBench(t)
	p := pair{Name: "orphaned", Runtime: "runc", Face: "native", Command: `[sleep, "1000"]`}
	b.want(0, "up", b.file(p.yaml()))
	defer b.want(0, "down", p.Name)
	before := b.brokerPID(p.Name)
	const packets = 240000 // 12 s, of which a busy machine may need a few
	got := b.stream(p.Name, draygen, "240000", "20kpps", func() {
		b.awaitLink(p.Name, func(l broker.LinkStatus) bool { return l.State == broker.StateActive })
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l := b.awaitLink(p.Name, func(l broker.LinkStatus) bool { return l.Adopted && l.State == broker.StateActive })
		if l.Generation != 1 || l.Rebinds != 0 {
			t.Errorf("the link was not adopted unchanged: %+v", l)
		}
	})
	if now := b.brokerPID(p.Name); now == before {
		t.Error("no other broker was started")
	}
	if got.Received != packets || got.Lost+got.Corrupt+got.Duplicates+got.Reordered > 0 || got.Link.Generation != 1 {
		t.Errorf("of %d packets the sink saw %+v", packets, got)
	}
}

// A link moves from memory to packet sockets and back while its ports are open.
func TestRelinkUnderTraffic(t *testing.T) {
	t.Parallel()
	draygen := generator(t)
	b := newBench(t)
	p := pair{Name: "moving", Runtime: "runc", Face: "native", Command: `[sleep, "1000"]`}
	b.want(0, "up", b.file(p.yaml()))
	defer b.want(0, "down", p.Name)
	const packets = 240000 // 12 s, of which a busy machine may need a few
	got := b.stream(p.Name, draygen, "240000", "20kpps", func() {
		b.awaitLink(p.Name, func(l broker.LinkStatus) bool { return l.State == broker.StateActive })
		for _, at := range []struct{ transport, kind string }{{"veth", broker.KindNetdev}, {"shm", broker.KindShm}} {
			b.want(0, "relink", p.Name, "ab", at.transport)
			b.awaitLink(p.Name, func(l broker.LinkStatus) bool { return l.State == broker.StateActive && l.Kind == at.kind })
		}
	})
	// Packets that the kernel had not delivered before the move are lost, and those that a sink without a CPU left in its socket.
	if got.Received < packets/2 || got.Corrupt+got.Duplicates > 0 || got.Link.Generation < 3 || got.Link.Kind != "shm" {
		t.Errorf("of %d packets the sink saw %+v", packets, got)
	}
	b.want(0, "relink", p.Name, "ab", "bridge")
	if r := b.want(0, "status", p.Name); !strings.Contains(r.Stdout, "bridge") {
		t.Errorf("status does not show that the link is over a bridge: %s", r)
	}
	b.want(3, "relink", p.Name, "ab", "loopback")
	b.want(1, "relink", p.Name, "nolink", "veth")
}

// awaitLink waits until holds accepts the link status from the chain's broker,
// which may still be starting.
func (b *bench) awaitLink(chain string, holds func(broker.LinkStatus) bool) broker.LinkStatus {
	b.t.Helper()
	return b.awaitLinks(chain, 1, holds)[0]
}

// awaitLinks is awaitLink for a chain of n links.
func (b *bench) awaitLinks(chain string, n int, holds func(broker.LinkStatus) bool) []broker.LinkStatus {
	b.t.Helper()
	var links []broker.LinkStatus
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var client *broker.Client
		if client, err = broker.Dial(filepath.Join(b.state, chain, "broker")); err != nil {
			continue
		}
		links, err = client.Status(context.Background())
		not := func(l broker.LinkStatus) bool { return !holds(l) }
		if err == nil && len(links) == n && !slices.ContainsFunc(links, not) {
			return links
		}
	}
	b.t.Fatalf("timed out waiting for the links; the broker reports %+v (%v)", links, err)
	return nil
}

// brokerPID is the process that serves the chain's native ports.
func (b *bench) brokerPID(chain string) int {
	b.t.Helper()
	type status struct {
		Broker struct{ Process struct{ PID int } }
	}
	for _, s := range decodeChains[status](b.t, b.want(0, "status", chain, "--json")) {
		return s.Broker.Process.PID
	}
	b.t.Fatalf("no chain %s", chain)
	return 0
}

// TestStatusTellsOfADeadSwitch ends a link's switch.
func TestStatusTellsOfADeadSwitch(t *testing.T) {
	t.Parallel()
	testenv.Program(t, "ovs-vswitchd")
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: "switched", Transport: "ovs"}.yaml()))
	defer b.want(0, "down", "switched")
	if r := b.want(0, "status", "switched"); strings.Contains(r.Stdout, "ended") {
		t.Errorf("ended while it runs: %s", r)
	}
	var state struct {
		Reports map[string]struct {
			Processes []struct {
				Name string
				ID   struct{ PID int }
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(b.state, "switched", "state.json"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range state.Reports["ab"].Processes {
		if p.Name == "ovs-vswitchd" {
			if err := syscall.Kill(p.ID.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if r := b.want(0, "status", "switched"); strings.Contains(r.Stdout, "ovs-vswitchd (process") {
			return
		}
	}
	t.Error("status never reported that ovs-vswitchd had ended")
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/memif"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/sockpath"
)

// TestPeers finds the other end of a connecting device, at its runtime's path.
func TestPeers(t *testing.T) {
	c := &chain.Chain{Functions: []chain.Function{{Name: "a", Runtime: chain.RuntimeRunc}, {Name: "b", Runtime: chain.RuntimeProcess}}}
	l := &Live{Chain: c}
	l.State.Sandboxes = map[string]*runtime.Sandbox{"a": {Netns: host.Netns{Path: "/a"}}, "b": {Netns: host.Netns{Path: "/b"}}}
	l.State.Reports = map[string]*transport.Report{"n3": {Vdevs: []dpdk.Vdev{
		{Function: "a", Port: "p", Dir: "/s/a/p"}, {Function: "b", Port: "q", Dir: "/s/b/q", Peer: "/s/a/p", Awaits: "memif.sock"},
	}}}
	want := []peer{{port: "q", function: "a", netns: host.Netns{Path: "/a"}, own: host.Netns{Path: "/b"}, socket: "/run/dray/links/p/memif.sock"}}
	if got := l.peers(c.Functions[1]); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := l.peers(c.Functions[0]); got != nil {
		t.Errorf("the listening end waits for %+v", got)
	}
	c.Functions[0].Runtime = chain.RuntimeProcess
	if got := l.peers(c.Functions[1]); got[0].socket != "/s/a/p/memif.sock" {
		t.Errorf("a process listens at %s", got[0].socket)
	}
	long := "/s/" + strings.Repeat("a", 100)
	for i, v := range l.State.Reports["n3"].Vdevs {
		v.Driver, v.Dir, v.Peer = dpdk.NetMemif, long, ""
		l.State.Reports["n3"].Vdevs[i] = v
	}
	if got := l.peers(c.Functions[1]); got[0].socket != sockpath.Link(long)+"/memif.sock" {
		t.Errorf("a process with a long directory listens at %s", got[0].socket)
	}
}

// TestNobodyWaitsInACircle builds links in opposite directions, of two functions
// and around three: no two functions wait for each other's sockets.
func TestNobodyWaitsInACircle(t *testing.T) {
	for _, ends := range [][][2]string{
		{{"a", "b"}, {"b", "a"}},
		{{"a", "b"}, {"b", "c"}, {"c", "a"}, {"b", "a"}},
	} {
		l := &Live{Chain: &chain.Chain{Name: "c"}, node: &Node{StateDir: "/s", Transports: []transport.Driver{memif.New()}}, dir: "/s/c"}
		l.State.Plan, l.State.Sandboxes, l.State.Reports = &plan.Plan{}, map[string]*runtime.Sandbox{}, map[string]*transport.Report{}
		for i, name := range []string{"a", "b", "c"} {
			l.Chain.Functions = append(l.Chain.Functions, chain.Function{Name: name, Runtime: chain.RuntimeRunc})
			l.State.Sandboxes[name] = &runtime.Sandbox{Netns: host.Netns{Path: "/" + name}, Links: "/s/c/fn/" + name + "/links", PortsUser: 1000 + i}
		}
		for i, e := range ends {
			pl := plan.Link{Name: fmt.Sprintf("l%d", i), Transport: memif.Name, MTU: 1500}
			for j, function := range e {
				pl.Ends = append(pl.Ends, plan.End{
					Function: function, Port: fmt.Sprintf("p%d", i), Face: chain.FaceDPDK,
					MAC: chain.MAC(fmt.Sprintf("02:00:00:00:%02x:%02x", i, j)), Queues: 1,
				})
			}
			build, err := l.buildLink(pl, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			l.State.Reports[pl.Name] = build.Report
		}
		for _, f := range l.Chain.Functions {
			if after := l.startsAfter(f.Name); slices.Contains(after, f.Name) {
				t.Errorf("links %v: %s starts after %v", ends, f.Name, after)
			}
		}
		if after := l.startsAfter("b"); !slices.Equal(after, []string{"a"}) {
			t.Errorf("links %v: b starts after %v, not a: the first end does not listen where it can", ends, after)
		}
	}
}

// immortal is an instance that nothing ends.
type immortal struct{ runtime.Instance }

var errImmortal = errors.New("it does not die of SIGKILL")

func (immortal) Done() <-chan struct{}      { return nil }
func (immortal) Wait() (int, error)         { select {} }
func (immortal) Stop(context.Context) error { return errImmortal }

// TestAttendGivesUp: a supervisor ends even if a command does not.
func TestAttendGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if code, again, err := attend(ctx, immortal{}, watchAll(nil, time.Hour, nil)); code != 0 || again || !errors.Is(err, errImmortal) {
		t.Errorf("%d, %v, %v", code, again, err)
	}
}

// connectUntil connects to l for a second in every two: a watch sees one of the
// connections, however late it looks, and then its loss.
func connectUntil(done <-chan struct{}, l net.Listener) error {
	for {
		client, err := net.Dial("unixpacket", l.Addr().String())
		if err != nil {
			return err
		}
		server, err := l.Accept()
		if err == nil {
			time.Sleep(time.Second)
			err = server.Close()
		}
		if err := errors.Join(err, client.Close()); err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-time.After(time.Second):
		}
	}
}

// TestWatchPeers follows a device that never connects, and one that loses its peer.
func TestWatchPeers(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	path := filepath.Join(t.TempDir(), "s")
	peers := []peer{{port: "q", function: "a", socket: path}}
	l, err := net.Listen("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := awaitPeers(ctx, peers); err != nil {
		t.Fatal(err)
	}
	if early, why := watchPeers(ctx, peers, time.Millisecond); !early || why == nil || !strings.Contains(why.Error(), "did not connect") {
		t.Errorf("never connected: %v, %v", early, why)
	}
	lost := make(chan struct{})
	connected := make(chan error, 1)
	go func() { connected <- connectUntil(lost, l) }()
	early, why := watchPeers(ctx, peers, time.Hour)
	close(lost)
	if early || why == nil || !strings.Contains(why.Error(), "lost a") {
		t.Errorf("lost: %v, %v", early, why)
	}
	if err := <-connected; err != nil {
		t.Error(err)
	}
	cancel()
	if early, why := watchPeers(ctx, peers, time.Hour); early || why != nil {
		t.Errorf("ended: %v, %v", early, why)
	}
}

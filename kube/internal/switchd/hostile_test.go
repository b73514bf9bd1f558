// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/kube/internal/nodeswitch"
	"github.com/drayage/dray/test/testenv"
)

// What one link, pod or caller does wrong is theirs: another link is made, and carries packets.
func TestOthersAreNotDisturbed(t *testing.T) {
	n := newNodes(t)[0]
	if _, err := n.client.Info(t.Context()); !errors.Is(err, nodeswitch.ErrAbsent) {
		t.Errorf("without a switch: %v", err)
	}
	t.Setenv(asleepVariable, "4s")
	n.start()
	bad := []*pod{newPod(t, 0, ""), newPod(t, 1, "")}
	n.meets("bad", bad...)
	theirs := nodeswitch.Link{Name: "bad", MTU: 1450, Ports: []nodeswitch.Port{n.port("bad", 0), n.port("bad", 1)}}
	n.apply(theirs)
	defer showsAFile(t, bad[0])()
	unshow := showsASocket(t, bad[1], "")
	await(t, func() string {
		made, err := n.client.List(t.Context())
		if err != nil || len(made) != 1 || !strings.Contains(made[0].Faults[0], "no socket") || made[0].Faults[1] != "" {
			return fmt.Sprintf("%+v, %v", made, err)
		}
		return ""
	})
	testCallers(t, n)
	testLinksThatCannotBe(t, n, theirs)

	sends, gets := newPod(t, 0, "txonly"), newPod(t, 1, "rxonly")
	n.meets(link, sends, gets)
	sends.start()
	gets.start()
	gets.receives("next to hostile ones")
	gets.stop()
	unshow()
	// A request for features, with a content that does not come. DPDK reads all sockets by one
	// thread, which waits for it.
	before := n.vswitchd()
	defer showsASocket(t, bad[1], "\x01\x00\x00\x00\x01\x00\x00\x00\x08\x00\x00\x00")()
	await(t, func() string {
		if now := n.vswitchd(); now == 0 || now == before {
			return "ovs-vswitchd goes on to wait for the rest of a message"
		}
		return ""
	})
	gets.start()
	gets.receives("after half a message")
}

func showsAFile(t *testing.T, p *pod) func() {
	path := filepath.Join(p.dir, "file")
	testenv.Must(t, os.WriteFile(path, nil, 0o600))
	return p.show(path)
}

// showsASocket accepts the switch's connection, and says this and not a word more.
func showsASocket(t *testing.T, p *pod, says string) (unshow func()) {
	path := filepath.Join(p.dir, "socket")
	l, err := net.Listen("unix", path)
	testenv.Must(t, err)
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte(says)) // the switch may have hung up
			accepted <- c
		}
	}()
	hide := p.show(path)
	var c net.Conn
	select {
	case c = <-accepted:
	case <-time.After(patience):
		t.Fatal("the switch does not connect")
	}
	return func() { hide(); l.Close(); c.Close() }
}

// testCallers: only root can call, and a call that is none ends there.
func testCallers(t *testing.T, n *node) {
	path := nodeswitch.ControlSocket(n.client.Dir)
	info, err := os.Stat(path)
	if testenv.Must(t, err); info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v", path, info.Mode())
	}
	for _, text := range []string{"", "{}\n", "[\n", strings.Repeat("x", 2<<20)} {
		c, err := net.Dial("unix", path)
		testenv.Must(t, err)
		_, _ = c.Write([]byte(text)) // the switch may have hung up
		testenv.Must(t, c.Close())
	}
	if info, err := n.client.Info(t.Context()); err != nil || info.Addr != n.addr {
		t.Errorf("after that: %+v, %v", info, err)
	}
}

// testLinksThatCannotBe asks for more than a switch has, together with a link that it can make.
func testLinksThatCannotBe(t *testing.T, n *node, theirs nodeswitch.Link) {
	named := func(name string, mtu int) nodeswitch.Link {
		return nodeswitch.Link{Name: name, MTU: mtu, Ports: []nodeswitch.Port{n.port(name, 0), n.port(name, 1)}}
	}
	far := nodeswitch.Link{Name: "far", MTU: 1451, Ports: []nodeswitch.Port{n.port("far", 0)}, Tunnel: true, Peer: &nodeswitch.Peer{Addr: n.addr, VNI: 1}}
	all := []nodeswitch.Link{theirs, named(link, 1450), {Name: "none"}, named("large", 9000), far}
	why := map[string]string{"none": "MTU 0", "large": "raise --memory", "far": "at most 1450"}
	await(t, func() string {
		made, err := n.client.Apply(t.Context(), all, true)
		if err != nil || len(made) != len(all) {
			return fmt.Sprintf("%+v, %v", made, err)
		}
		for _, m := range made {
			if want := why[m.Name]; (m.Error == "") != (want == "") || !strings.Contains(m.Error, want) {
				return fmt.Sprintf("%+v, want %q", m, want)
			}
		}
		return ""
	})
	var many []nodeswitch.Link
	for i := range nodeswitch.MaxLinks + 1 {
		many = append(many, named(fmt.Sprint("l", i), 1450))
	}
	if _, err := n.client.Apply(t.Context(), many, true); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%d links: %v", len(many), err)
	}
}

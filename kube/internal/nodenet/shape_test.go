// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// shapedAs checks the qdisc of an interface, as tc reads it.
func shapedAs(t *testing.T, ns host.Netns, name, want string) {
	t.Helper()
	if q, err := ns.ReadQdisc(name); err != nil || q.Kind != "tbf" || !strings.Contains(q.Text, want) {
		t.Errorf("%s has %+v, %v, and not %q", name, q, err, want)
	}
}

// halfOf is the namespace of a half, by a packet socket in it.
func halfOf(t *testing.T, socket int) host.Netns {
	t.Helper()
	fd, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "half")
	t.Cleanup(func() { _ = file.Close() })
	return host.OfFile(file)
}

// Each port of a shaped link has a token bucket: in the pod, and at the socket of an application. What is already so
// stays as it is.
func TestShapedPorts(t *testing.T) {
	testenv.Program(t, "tc")
	n := newNode(t)
	server := start(t, "server", n.dir, n.ns)
	a := n.pod("a")
	bucket := &chain.Qdisc{Kind: "tbf", Rate: 10e6, Burst: 80 << 10, Latency: 20e6}
	own, native := interfaceOf(t, 0, a), Port{End: 1, MAC: mac(t, "02:00:00:00:00:0b"), Shape: bucket}
	own.Shape = bucket
	hub := Half{Name: "ns/c/l", MTU: 1500, Tunnel: TunnelNone, Ports: []Port{own, native}}
	for range 2 {
		if made := apply(t, n.Client, []Half{hub}, true); made[0].Error != "" || len(made[0].Faults) > 0 {
			t.Fatalf("%+v", made)
		}
		shapedAs(t, a, "f1u", "rate 10Mbit burst 80Kb lat 20ms")
		fds, err := n.Sockets(t.Context(), hub.Name, PortDevice(1), 1)
		if err != nil {
			t.Fatal(err)
		}
		shapedAs(t, halfOf(t, fds[0]), PortDevice(1), "rate 10Mbit burst 80Kb lat 20ms")
		closeAll(fds)
	}
	hub.Ports[0].Shape = &chain.Qdisc{Kind: "htb", Rate: 10e6}
	if made := apply(t, n.Client, []Half{hub}, false); !strings.Contains(made[0].Faults[0], "unsupported") {
		t.Errorf("with htb: %+v", made)
	}
	kill(server)
}

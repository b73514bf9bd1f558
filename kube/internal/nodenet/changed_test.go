// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// leaveBridge takes the port of end 0 from the bridge of the only half.
func leaveBridge(t *testing.T, n *node) {
	t.Helper()
	all, err := kept{n.dir}.all(t.Context())
	testenv.Must(t, err)
	if len(all) != 1 {
		t.Fatalf("the keeper has %v", all)
	}
	for _, f := range all {
		testenv.Must(t, host.OfFile(f).Do(func() error { return exec.Command("ip", "link", "set", hubSide(0), "nomaster").Run() }))
		testenv.Must(t, f.Close())
	}
}

// What somebody changes at a pod's interface is reported until it is undone. An interface that is gone, or has
// another MAC address, is made again, and that is reported once. What the pod adds is its own affair.
func TestChangedInterfacesAreReported(t *testing.T) {
	n := newNode(t)
	start(t, "keeper", n.dir, n.ns)
	start(t, "server", n.dir, n.ns)
	a := n.pod("a")
	half := Half{Name: "ns/c/l", MTU: 1500, Tunnel: TunnelNone, Ports: []Port{interfaceOf(t, 0, a)}}
	ip := func(command string) {
		t.Helper()
		err := a.Do(func() error { return exec.Command("ip", strings.Fields(command)...).Run() })
		if err != nil {
			t.Fatalf("ip %s: %v", command, err)
		}
	}
	clean := Made{Name: half.Name}
	if m := n.made(half); !reflect.DeepEqual(m, clean) {
		t.Fatalf("a new interface: %+v", m)
	}
	for _, c := range []struct{ change, says, undo string }{
		{"link set f1u down", "is down", "link set f1u up"},
		{"link set f1u mtu 1400", "has an MTU of 1400, not 1500", "link set f1u mtu 1500"},
		{"addr flush dev f1u", "has lost its address 10.38.0.1/24", "addr add 10.38.0.1/24 dev f1u"},
	} {
		ip(c.change)
		for range 2 {
			if m := n.made(half); !reflect.DeepEqual(m.Wrong, map[int]string{0: c.says}) || m.Again != nil {
				t.Errorf("after %s: %+v", c.change, m)
			}
		}
		ip(c.undo)
		if m := n.made(half); !reflect.DeepEqual(m, clean) {
			t.Errorf("after %s: %+v", c.undo, m)
		}
	}
	for change, says := range map[string]string{
		"link delete f1u":                        host.Absent,
		"link set f1u address 02:00:00:00:00:99": "has the MAC address 02:00:00:00:00:99, not 02:00:00:00:00:0a",
	} {
		ip(change)
		if m := n.made(half); !reflect.DeepEqual(m.Again, map[int]string{0: says}) || m.Wrong != nil {
			t.Errorf("after %s: %+v", change, m)
		}
		if m := n.made(half); !reflect.DeepEqual(m, clean) || stateIn(t, a).MAC.String() != "02:00:00:00:00:0a" {
			t.Errorf("then: %+v", m)
		}
	}
	leaveBridge(t, n)
	if m := n.made(half); !reflect.DeepEqual(m.Again, map[int]string{0: cutOff}) || m.Wrong != nil {
		t.Errorf("without its bridge: %+v", m)
	}
	ip("link delete f1u")
	ip("link add f1u type veth peer name other")
	if m := apply(t, n.Client, []Half{half}, true)[0]; m.Again != nil || !strings.Contains(m.Faults[0], "another interface of this name") {
		t.Errorf("what could not be made again: %+v", m)
	}
	ip("link delete f1u")
	if m := n.made(half); !reflect.DeepEqual(m.Again, map[int]string{0: host.Absent}) {
		t.Errorf("then: %+v", m)
	}
	ip("addr add 192.0.2.1/24 dev f1u")
	ip("route add 203.0.113.0/24 dev f1u")
	if m := n.made(half); !reflect.DeepEqual(m, clean) {
		t.Errorf("after an address and a route more: %+v", m)
	}
	n.end(a)
	a = n.pod("b") // the next sandbox of the pod
	half.Ports = []Port{interfaceOf(t, 0, a)}
	if m := n.made(half); !reflect.DeepEqual(m, clean) {
		t.Errorf("in another sandbox: %+v", m)
	}
}

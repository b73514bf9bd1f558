// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"github.com/drayage/dray/kube/internal/nodeswitch"
	"github.com/drayage/dray/test/testenv"
)

// link is the name of the tests' link.
const link = "ran/c/l"

// Packets pass between pods of one node and of two, also after each program has been killed.
func TestPackets(t *testing.T) {
	both := newNodes(t)
	for _, n := range both {
		n.start()
	}
	n, sends, gets := both[0], newPod(t, 0, "txonly"), newPod(t, 1, "rxonly")
	n.meets(link, sends, gets)
	want := nodeswitch.Link{Name: link, MTU: 1450, Ports: []nodeswitch.Port{n.port(link, 0), n.port(link, 1)}}
	n.apply(want)
	sends.start()
	gets.start()
	gets.receives("at first")

	n.kill("ovs-vswitchd")
	gets.receivesAgain("after ovs-vswitchd was killed", sends)
	sends.restart()
	gets.restart()
	gets.receives("after both applications were killed")
	n.kill("ovsdb-server")
	other := want
	other.Name = "another"
	n.apply(want, other) // takes another one
	n.apply(want)
	n.restart()
	gets.receivesAgain("after dray-switch was killed", sends) // nobody has asked for the link again
	gets.stop()
	sends.restart()

	testTunnel(t, both, sends)
	for _, n := range both {
		testNothingIsLeft(t, n)
	}
}

// testTunnel moves the receiving end to the other node.
func testTunnel(t *testing.T, both [2]*node, sends *pod) {
	far := newPod(t, 1, "rxonly")
	both[1].meets(link, far)
	var links [2]nodeswitch.Link
	var numbers [2]int
	for i, n := range both {
		links[i] = nodeswitch.Link{Name: link, MTU: 1450, Ports: []nodeswitch.Port{n.port(link, i)}, Tunnel: true}
		numbers[i] = n.apply(links[i])[0].VNI
		if numbers[i] == 0 {
			t.Fatal("a tunnel without a number")
		}
		info, err := n.client.Info(t.Context())
		if testenv.Must(t, err); info.Addr != n.addr || info.MTU != 1500 || info.Version == "" {
			t.Errorf("%+v", info)
		}
	}
	for i, n := range both {
		links[i].Peer = &nodeswitch.Peer{Addr: both[1-i].addr, VNI: numbers[1-i]}
		if got := n.apply(links[i])[0].VNI; got != numbers[i] {
			t.Errorf("the number became %d, was %d", got, numbers[i])
		}
	}
	far.start()
	far.receives("from the other node")
	if n := both[0].unreachable(); n != 0 {
		t.Errorf("the receiver's kernel has answered %d packets of the tunnel", n)
	}
	both[0].kill("ovs-vswitchd")
	far.receivesAgain("after the sender's ovs-vswitchd was killed", sends)
	both[1].restart()
	far.receivesAgain("after the receiver's dray-switch was killed", sends)
	if got := both[1].apply(links[1]); !reflect.DeepEqual(got, []nodeswitch.Made{{Name: link, VNI: numbers[1]}}) {
		t.Errorf("after a restart: %+v", got)
	}
	far.stop()
	sends.stop()
}

// testNothingIsLeft prunes all links, and ends the switch.
func testNothingIsLeft(t *testing.T, n *node) {
	n.apply()
	await(t, func() string {
		if left, err := n.client.List(t.Context()); err != nil || len(left) > 0 {
			return "links are left"
		}
		if left, _ := filepath.Glob(filepath.Join(n.client.Dir, "ovs", "l*.mgmt")); len(left) > 0 {
			return left[0] + " is left"
		}
		return ""
	})
	var children []int
	await(t, func() string { // its last tool may be ending
		if children = n.children(); len(children) != 2 {
			return fmt.Sprintf("it has %d processes, not two", len(children))
		}
		return ""
	})
	testenv.Must(t, n.cmd.Process.Signal(syscall.SIGTERM))
	if err := n.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, pid := range children {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is left", pid)
		}
	}
	if ports, _ := os.ReadDir(filepath.Join(n.client.Dir, "ovs", "ports")); len(ports) > 0 {
		t.Errorf("%s is left", ports[0].Name())
	}
}

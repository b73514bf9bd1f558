// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestCPUMask(t *testing.T) {
	for want, cpus := range map[string][]int{"0x1": {0}, "0x6": {1, 2}, "0x80": {7}, "0x100000000000000000": {68}, "0x11": {4, 0}} {
		if got := CPUMask(cpus); got != want {
			t.Errorf("CPUs %v are %s, not %s", cpus, got, want)
		}
	}
}

func TestParseVersion(t *testing.T) {
	const plain = "ovs-vswitchd (Open vSwitch) 3.1.0\n"
	if version, ok := parseVersion(plain + "DPDK 22.11.11\n"); !ok || version != "3.1.0, DPDK 22.11.11" {
		t.Errorf("%q, %v", version, ok)
	}
	for _, out := range []string{"", plain, plain + "\n", "DPDK 22.11.11"} {
		if version, ok := parseVersion(out); ok {
			t.Errorf("%q is taken for a switch on DPDK, %q", out, version)
		}
	}
}

func spec(ends ...transport.End) transport.Spec {
	for i := range ends {
		ends[i].Name = portName(i)
	}
	return transport.Spec{Chain: "c", Link: "l", Dir: "/run/dray/c/link/l", MTU: 1500, Ends: ends, Cgroup: host.Cgroup{Path: "/dray/c/link-l"}}
}

// TestLeastPrivilege: the switch gets the capabilities for its kinds of ends,
// and no others.
func TestLeastPrivilege(t *testing.T) {
	application := transport.End{Face: chain.FaceDPDK, User: 1000, Dir: "/run/dray/c/fn/a/links/p"}
	other := application
	other.User = 1001
	two := New().(driver).newSwitch(spec(application, other)).vswitchd("", nil)
	if !slices.Equal(two.Caps, []string{"CAP_NET_ADMIN"}) || !slices.Equal(two.Files, []int{1000, 1001}) || two.Netns != nil {
		t.Errorf("between applications: %+v", two)
	}
	mixed := New().(driver).newSwitch(spec(application, transport.End{Face: chain.FaceNetdev})).vswitchd("", []int{3})
	if !slices.Contains(mixed.Caps, "CAP_NET_RAW") || mixed.Netns == nil || mixed.Userns == "" || !slices.Equal(mixed.Files, []int{1000}) || len(mixed.CPUs) > 0 {
		t.Errorf("with an interface: %+v", mixed)
	}
	machine := transport.End{Runtime: chain.RuntimeVM, User: 1002, Dir: "/run/dray/c/fn/m/links/p"}
	machines := New().(driver).newSwitch(spec(application, machine)).vswitchd("", nil)
	if !slices.Equal(machines.Caps, []string{"CAP_NET_ADMIN"}) || !slices.Equal(machines.Files, []int{1000, 1002}) || machines.Netns != nil {
		t.Errorf("with a machine: %+v", machines)
	}
	own := NewDray().(driver).newSwitch(spec(application, other)).vswitchd("", []int{3})
	if len(own.Files) > 0 || !slices.Equal(own.CPUs, []int{3}) {
		t.Errorf("with its own ports: %+v", own)
	}
	for _, b := range own.Binds {
		if strings.Contains(b.Source, "/fn/") {
			t.Errorf("with its own ports it sees %+v", b)
		}
	}
}

// TestMoves: requests that the broker cannot serve are rejected with the fix.
func TestMoves(t *testing.T) {
	s := spec(transport.End{}, transport.End{})
	if err := (drayPorts{}).check(s); err != nil {
		t.Error(err)
	}
	s.Move = true
	if err := (drayPorts{}).check(s); err == nil || !strings.Contains(err.Error(), "dray down") {
		t.Errorf("a move: %v", err)
	}
}

// The link's qdisc is at the function's port, unless it is at the switch.
func TestShapesOfHalves(t *testing.T) {
	link, own := &chain.Qdisc{Kind: "sfq"}, &chain.Qdisc{Kind: "pfifo"}
	atSwitch := &chain.Qdisc{Kind: "prio", At: chain.AtSwitch}
	for _, c := range []struct{ link, own, port, sw *chain.Qdisc }{
		{nil, nil, nil, nil}, {link, nil, link, nil}, {link, own, own, nil}, {atSwitch, nil, nil, atSwitch}, {atSwitch, own, own, atSwitch},
	} {
		half := transport.Spec{Shape: c.link, Ends: []transport.End{{Shape: c.own}, {}}}
		shapeHalf(&half)
		if half.Ends[0].Shape != c.port || half.Ends[1].Shape != c.sw || half.Shape != nil {
			t.Errorf("%+v: port %+v, switch %+v", c, half.Ends[0].Shape, half.Ends[1].Shape)
		}
	}
}

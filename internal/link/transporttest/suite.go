// SPDX-License-Identifier: Apache-2.0

// Package transporttest is the conformance suite: it checks each transport's
// behaviour, and that it leaves nothing behind.
package transporttest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// jumbo is the common MTU of jumbo frames, in bytes of L3 packet.
const jumbo = 9000

// defaultMTU is a port's MTU if its chain states none, in bytes of L3 packet.
const defaultMTU = 1500

// Run runs the suite for links between ports.
func Run(t *testing.T, d transport.Driver) {
	require(t, d)
	openBefore, _ := leaks(t)
	t.Run("Caps", func(t *testing.T) { testCaps(t, d) })
	t.Run("SpecErrors", func(t *testing.T) { testSpecErrors(t, d, Options{}) })
	t.Run("Ports", func(t *testing.T) { testPorts(t, d) })
	t.Run("Traffic", func(t *testing.T) { testTraffic(t, d, Options{Queues: 2}) })
	t.Run("TrafficIPv6", func(t *testing.T) { testTraffic(t, d, Options{IPv6: true}) })
	t.Run("Jumbo", func(t *testing.T) { testTraffic(t, d, Options{MTU: jumbo}) })
	t.Run("LargestMTU", func(t *testing.T) { testTraffic(t, d, Options{Ports: 2, MTU: d.Caps().MaxMTU}) })
	t.Run("Shape", func(t *testing.T) { testShape(t, d, Options{}) })
	t.Run("ShapeOfOneEnd", func(t *testing.T) { testShapeOfOneEnd(t, d, Options{}) })
	t.Run("ShapeAtSwitch", func(t *testing.T) { testShapeAtSwitch(t, d, Options{}) })
	for _, kind := range []string{"sfq", "codel", "fq_codel"} {
		t.Run("QueueAtSwitch/"+kind, func(t *testing.T) { testQueueAtSwitch(t, d, Options{}, kind) })
	}
	t.Run("ShapeLimits", func(t *testing.T) { testShapeLimits(t, d, Options{}) })
	t.Run("Parallel", func(t *testing.T) { testParallel(t, d) })
	t.Run("Removal", func(t *testing.T) { testRemoval(t, d, Options{}) })
	t.Run("Faults", func(t *testing.T) {
		RunFaults(t, func(t *testing.T) World { return NewRig(t, d, Options{Shape: pfifo}) })
	})
	t.Run("Cancel", func(t *testing.T) { testCancel(t, d, Options{}) })
	t.Run("Vanish", func(t *testing.T) { testVanish(t, d, Options{}) })
	t.Run("ReadBack", func(t *testing.T) { testReadBack(t, d, Options{}) })
	t.Run("Throughput", func(t *testing.T) { testThroughput(t, d, Options{}, setupTimeout) })
	checkLeaks(t, openBefore)
}

// RunUplink runs the suite for links from a port to a host interface.
func RunUplink(t *testing.T, d transport.Driver) {
	require(t, d)
	openBefore, _ := leaks(t)
	up := Options{Uplink: true}
	t.Run("Caps", func(t *testing.T) { testCaps(t, d) })
	t.Run("SpecErrors", func(t *testing.T) { testSpecErrors(t, d, up) })
	t.Run("Traffic", func(t *testing.T) { testTraffic(t, d, up) })
	t.Run("TrafficIPv6", func(t *testing.T) { testTraffic(t, d, Options{Uplink: true, IPv6: true}) })
	t.Run("Jumbo", func(t *testing.T) { testTraffic(t, d, Options{Uplink: true, MTU: jumbo}) })
	t.Run("LargestMTU", func(t *testing.T) { testTraffic(t, d, Options{Uplink: true, MTU: d.Caps().MaxMTU}) })
	t.Run("Bulk", func(t *testing.T) { testBulk(t, d) })
	t.Run("HostKeepsItsTraffic", func(t *testing.T) { testHostTraffic(t, d) })
	t.Run("HostNetns", func(t *testing.T) { testHostNetns(t, d) })
	t.Run("Errors", func(t *testing.T) { testUplinkErrors(t, d) })
	t.Run("Shape", func(t *testing.T) { testShape(t, d, up) })
	t.Run("ShapeLimits", func(t *testing.T) { testShapeLimits(t, d, up) })
	t.Run("Removal", func(t *testing.T) { testRemoval(t, d, up) })
	t.Run("Faults", func(t *testing.T) {
		RunFaults(t, func(t *testing.T) World { return NewRig(t, d, Options{Uplink: true, Shape: pfifo}) })
	})
	t.Run("Cancel", func(t *testing.T) { testCancel(t, d, up) })
	t.Run("Vanish", func(t *testing.T) { testVanish(t, d, up) })
	t.Run("ReadBack", func(t *testing.T) { testReadBack(t, d, up) })
	t.Run("Throughput", func(t *testing.T) { testThroughput(t, d, up, setupTimeout) })
	checkLeaks(t, openBefore)
}

// pfifo is a qdisc of every kernel with traffic control.
var pfifo = &chain.Qdisc{Kind: "pfifo", Limit: 123}

// require skips the suite if the host cannot run the driver.
func require(t *testing.T, d transport.Driver) {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "tc")
	item := d.Probe(context.Background())
	testenv.Kernel(t, item)
	if item.Name != d.Name() || item.Status != inventory.OK {
		t.Fatalf("probe: %+v", item)
	}
}

func checkLeaks(t *testing.T, openBefore int) {
	t.Helper()
	open, children := leaks(t)
	if open > openBefore {
		t.Errorf("%d descriptors of network namespaces are open; before, %d were", open, openBefore)
	}
	if len(children) > 0 {
		t.Errorf("child processes are left: %v", children)
	}
}

func testCaps(t *testing.T, d transport.Driver) {
	c := d.Caps()
	if c.Isolation != string(chain.IsolationNoSharedMemory) && c.Isolation != string(chain.IsolationNoPeerMemory) &&
		c.Isolation != string(chain.IsolationLink) && c.Isolation != string(chain.IsolationSlice) {
		t.Errorf("isolation %q is none that a chain file knows", c.Isolation)
	}
	if len(c.Faces) == 0 || c.MinEnds < 1 || c.MaxMTU < defaultMTU || c.KernelPath == "" || c.Privileges == "" || c.Rank == 0 {
		t.Errorf("incomplete: %+v", c)
	}
}

// testSpecErrors checks that Build rejects specs that cannot be built, and
// names the fix.
func testSpecErrors(t *testing.T, d transport.Driver, o Options) {
	caps := d.Caps()
	extra := transport.End{Netns: host.Netns{Path: "/nowhere"}, Name: "extra", MAC: mac(9)}
	uplink := transport.End{Name: "eth9", Uplink: true}
	cases := []struct {
		name    string
		applies bool
		change  func(*transport.Spec)
		want    string
	}{
		{"no ends", true, func(s *transport.Spec) { s.Ends = nil }, "add an end"},
		{"one port and nothing else", true, func(s *transport.Spec) { s.Ends = s.Ends[:1] }, "add"},
		{"too many ports", caps.MaxEnds > 0 && !caps.Tunnel, func(s *transport.Spec) {
			s.Ends = append(s.Ends, slices.Repeat([]transport.End{extra}, caps.MaxEnds)...)
		}, "the transport joins at most"},
		{"uplink", !caps.Uplink, func(s *transport.Spec) { s.Ends[1] = uplink }, "use macvlan or af-packet"},
		{"two uplinks", caps.Uplink, func(s *transport.Spec) { s.Ends = append(s.Ends[:1], uplink, uplink) }, "use one"},
		{"MTU above", true, func(s *transport.Spec) { s.MTU = caps.MaxMTU + 1 }, "give an mtu"},
		{"MTU below", true, func(s *transport.Spec) { s.MTU = 67 }, "give an mtu"},
		{"MTU below IPv6", true, func(s *transport.Spec) { s.Ends[0].IP, s.MTU = address(0, true), 1279 }, "give an mtu"},
		{"name too long", true, func(s *transport.Spec) { s.Ends[0].Name = strings.Repeat("x", 16) }, "rename"},
		{"group MAC", true, func(s *transport.Spec) { s.Ends[0].MAC = []byte{1, 0, 0, 0, 0, 1} }, "give one such as"},
		{"one MAC twice", true, func(s *transport.Spec) { extra.MAC = s.Ends[0].MAC; s.Ends = append(s.Ends, extra) }, "change one"},
		{"one port twice", true, func(s *transport.Spec) { s.Ends = append(s.Ends, s.Ends[0]) }, "remove one"},
		{"other function", caps.SameNetns, func(s *transport.Spec) { s.Ends[1].Netns.Path += "x" }, "use transport veth"},
		{"qdisc without rate", caps.Shapes, func(s *transport.Spec) { s.Shape = &chain.Qdisc{Kind: "tbf"} }, "give one"},
		{"burst below a frame", caps.Shapes, func(s *transport.Spec) {
			s.Shape = &chain.Qdisc{Kind: "tbf", Rate: 1e6, Burst: 1513}
		}, "give at least 1514"},
		{"forwarding", !caps.Forwards, func(s *transport.Spec) { s.Forwarding = chain.ForwardingLearning }, "drop forwarding"},
		{"direct, three ends", caps.Forwards, func(s *transport.Spec) {
			s.Ends, s.Forwarding = append(s.Ends, extra), chain.ForwardingDirect
		}, "use forwarding: learning"},
		{"directory", true, func(s *transport.Spec) { s.Dir = "relative" }, "not absolute"},
	}
	r := NewRig(t, d, o)
	for _, c := range cases {
		if !c.applies {
			continue
		}
		spec := r.Spec
		spec.Ends = append([]transport.End(nil), r.Spec.Ends...)
		c.change(&spec)
		if _, err := d.Build(spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	r.Clean("after Build has refused")
}

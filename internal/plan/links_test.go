// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// hardLink edits the pair so that its link is impossible to build.
type hardLink struct {
	name       string
	edit       func(*chain.Chain, *chain.Link, *inventory.Inventory)
	constraint string
	reason     string
}

// An impossible link is infeasible under either policy, and names its constraint.
func TestHardViolationsOfLinks(t *testing.T) {
	violateEach(t, []hardLink{
		{"dpdk face", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			c.Functions[1].Ports[0].Face = chain.FaceDPDK
		}, "face dpdk of b.p0", "no transport can do this"},
		{"dpdk face on a named transport", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			c.Functions[0].Ports[0].Face, l.Transport = chain.FaceDPDK, "veth"
		}, "face dpdk of a.p0", "veth serves only"},
		{"transport not built", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Transport = "memif"
		}, "transport memif", "there is no such transport"},
		{"transport missing", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Transport = "ovs"
		}, "transport ovs", "ovs is missing on this host: ovs-vswitchd is not installed"},
		{"isolation", func(_ *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			l.Isolation = chain.IsolationNoSharedMemory
			for i := range inv.Transports {
				inv.Transports[i].Caps.Isolation = string(chain.IsolationLink)
			}
		}, "isolation no-shared-memory", "no transport can do this"},
		{"too many ports", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			c.Functions = append(c.Functions, function("c", port("p0")))
			l.Ends = append(l.Ends, end("c", "p0"))
			l.Transport = "veth"
		}, "3 ports", "takes at most 2 ports"},
		{"too few ports", func(_ *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			l.Transport = "bridge"
			inv.Transport("bridge").Caps.MinEnds = 3
		}, "2 ports", "bridge needs at least 3 ports"},
		{"only a baseline is there", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			c.Functions[0].Ports = append(c.Functions[0].Ports, port("p1"))
			l.Ends[1] = end("a", "p1")
			inv.Transports = []inventory.Transport{*inv.Transport("loopback")}
		}, "transport auto", "no transport that auto may choose"},
		{"different namespaces", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Transport = "loopback"
		}, "ends in one network namespace", "joins only ports of one function"},
		{"qdisc the kernel lacks", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.QoS = &chain.Qdisc{Kind: "hfsc", Rate: 1e9}
		}, "qdisc hfsc", "unsupported: this kernel has no sch_hfsc"},
		{"queue below a shaper that the kernel lacks", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.QoS = &chain.Qdisc{Kind: "tbf", Rate: 1e9, Child: &chain.Qdisc{Kind: "sfq"}}
		}, "qdisc sfq", "unsupported: this kernel has no sch_sfq"},
		{"qdisc of one port that the kernel lacks", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			c.Functions[1].Ports[0].QoS = &chain.Qdisc{Kind: "codel"}
		}, "qdisc codel", "unsupported: this kernel has no sch_codel"},
		{"qdisc of one port where both are lo", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			c.Functions[0].Ports = append(c.Functions[0].Ports, port("p1"))
			l.Ends[1], l.Transport = end("a", "p1"), "loopback"
			c.Functions[0].Ports[0].QoS = &chain.Qdisc{Kind: "tbf", Rate: 1e9}
		}, "qos of a.p0", "has one qdisc for all its ports"},
		{"qdisc nobody probed", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.QoS = &chain.Qdisc{Kind: "codel"}
		}, "qdisc codel", "unsupported: this kernel has no sch_codel"},
		{"tbf missing for max_bitrate", func(_ *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			l.Requires.MaxBitrate, inv.Qdiscs = 1e9, nil
		}, "qdisc tbf", "unsupported: this kernel has no sch_tbf"},
		{"transport that cannot shape", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			l.Transport, l.QoS = "veth", &chain.Qdisc{Kind: "pfifo"}
			inv.Transport("veth").Caps.Shapes = false
		}, "qdisc pfifo", "cannot set a qdisc"},
		{"qdisc at the switch where there is none", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Transport, l.QoS = "veth", &chain.Qdisc{Kind: "htb", Rate: 1e9, At: chain.AtSwitch}
		}, "qdisc htb at the switch", "has no switch that sets a qdisc"},
		{"qdisc at the switch in addition to the ports' own", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			inv.Transport("veth").Caps.OwnShapes = true
			for i := range c.Functions {
				for j := range c.Functions[i].Ports {
					c.Functions[i].Ports[j].QoS = &chain.Qdisc{Kind: "tbf", Rate: 1e9}
				}
			}
			l.QoS = &chain.Qdisc{Kind: "codel", At: chain.AtSwitch}
		}, "qdisc codel", "unsupported: this kernel has no sch_codel"},
		{"mtu beyond the transport", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			for i := range inv.Transports {
				inv.Transports[i].Caps.MaxMTU = 1499
			}
		}, "mtu 1500", "carries packets of at most 1499 bytes"},
		{"unknown uplink", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Ends[1] = chain.End{Uplink: "eth9"}
		}, "uplink:eth9", "no such interface"},
		{"uplink that is down", func(_ *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			l.Ends[1], inv.Interfaces[0].Up = chain.End{Uplink: "eth0"}, false
		}, "uplink:eth0", "the interface is down"},
		{"mtu beyond the uplink", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Ends[1], c.Functions[0].Ports[0].MTU = chain.End{Uplink: "eth0"}, 9000
		}, "mtu 9000", "uplink:eth0 carries packets of at most 1500 bytes"},
		{"transport without uplinks", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Ends[1], l.Transport = chain.End{Uplink: "eth0"}, "bridge"
		}, "end uplink:eth0", "bridge cannot join a host interface"},
		{"two uplinks", func(_ *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			l.Ends = []chain.End{end("a", "p0"), {Uplink: "eth0"}, {Uplink: "eth1"}}
			inv.Interfaces = append(inv.Interfaces, inventory.Interface{Name: "eth1", MTU: 1500, Up: true})
		}, "end uplink:eth1", "at most one host interface"},
	})
}

// queueing makes the ports of a chain's link native, on shared memory with that qdisc.
func queueing(c *chain.Chain, l *chain.Link, inv *inventory.Inventory, q chain.Qdisc) {
	native(c)
	l.Transport, l.QoS = "shm", &q
	inv.Transport("shm").Caps.PortQueues = true
}

func TestHardViolationsOfPortQueues(t *testing.T) {
	violateEach(t, []hardLink{
		{"netem in user space", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			queueing(c, l, inv, chain.Qdisc{Kind: "netem", Rate: 1e9})
		}, "qdisc netem", "shm cannot queue so: user space has no netem"},
		{"more than the memory of a port", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			queueing(c, l, inv, chain.Qdisc{Kind: "fq_codel", Limit: 10240})
		}, "qdisc fq_codel", "limits of 10240 packets in sum"},
		{"several queues of a port", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			queueing(c, l, inv, chain.Qdisc{Kind: "sfq"})
			c.Functions[1].Ports[0].Queues = 2
		}, "queues 2 of b.p0", "one queue"},
		{"a port's own", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			queueing(c, l, inv, chain.Qdisc{Kind: "pfifo"})
			c.Functions[1].Ports[0].QoS = &chain.Qdisc{Kind: "bfifo", Limit: 100}
		}, "qdisc bfifo", "no room for a frame"},
		{"at a switch that is none", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			queueing(c, l, inv, chain.Qdisc{Kind: "codel", At: chain.AtSwitch})
		}, "qdisc codel at the switch", "no switch"},
		{"strict priority in a kernel", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Transport, l.QoS = "veth", &chain.Qdisc{Kind: "prio", Classes: []chain.Class{{Name: "x"}}}
		}, "qdisc prio", "veth has no such queues"},
		{"classes in a kernel", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.Transport, l.QoS = "veth", &chain.Qdisc{Kind: "htb", Rate: 1e9, Classes: []chain.Class{{Name: "x", Rate: 1e9}}}
		}, "qdisc htb with classes", "veth has no such queues"},
		{"slots below a shaper in a kernel", func(_ *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			l.QoS = &chain.Qdisc{Kind: "tbf", Rate: 1e9, Child: &chain.Qdisc{Kind: "slot", Slot: 1e6}}
		}, "qdisc tbf", "no such queues"},
	})
}

// A port that queues itself needs no kernel's qdisc, and has other buckets.
func TestPortQueues(t *testing.T) {
	c, inv := pair(), loadInventory(t, "server8")
	queueing(c, &c.Links[0], inv, chain.Qdisc{Kind: "hfsc", Rate: 1e9})
	c.Functions[1].Ports[0].QoS = &chain.Qdisc{Kind: "tbf", Rate: 1e6}
	inv.Qdiscs = nil
	p, err := Make(c, inv)
	if err != nil {
		t.Fatal(err)
	}
	if l := p.Links[0]; l.Shape.Burst != 500000 || l.Ends[0].Shape != nil || l.Ends[1].Shape.Burst != 3028 {
		t.Errorf("the link has %+v, b.p0 has %+v", l.Shape, l.Ends[1].Shape)
	}
	c.Links[0].Transport = "veth"
	c.Links[0].QoS.Kind, inv = "htb", loadInventory(t, "server8")
	if p, err = Make(c, inv); err != nil || p.Links[0].Ends[1].Shape.Burst != largestGSO {
		t.Errorf("over an interface b.p0 has %+v, %v", p.Links[0].Ends[1].Shape, err)
	}
}

func TestHardViolationsOfNativeLinks(t *testing.T) {
	violateEach(t, []hardLink{
		{"shared memory for a netdev", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			c.Functions[1].Ports[0].Face, l.Transport = chain.FaceNative, "shm"
		}, "face netdev of a.p0", "shm serves only ports with face native"},
		{"shared memory where none may be shared", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			native(c)
			l.Transport, l.Isolation = "shm", chain.IsolationNoSharedMemory
		}, "isolation no-shared-memory", "shm isolates only up to level"},
		{"shared memory for peers that share none", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			native(c)
			l.Transport, l.Isolation = "shm", chain.IsolationNoPeerMemory
		}, "isolation no-peer-memory", "shm isolates only up to level"},
		{"shaped shared memory whose ports do not queue", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			native(c)
			l.Transport, l.Requires.MaxBitrate = "shm", 1e9
			inv.Transport("shm").Caps.PortQueues = false
		}, "qdisc tbf", "shm cannot set a qdisc"},
		{"shared memory of three", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			native(c)
			c.Functions = append(c.Functions, function("c", chain.Port{Name: "p0", Face: chain.FaceNative, MTU: 1500, Queues: 1}))
			l.Ends, l.Transport = append(l.Ends, end("c", "p0")), "shm"
		}, "3 ports", "shm takes at most 2 ports"},
		{"too many queues for libdray", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			native(c)
			c.Functions[0].Ports[0].Queues = 17
		}, "queues 17 of a.p0", "gives a native or dpdk port at most 16 queues"},
		{"messages over a kernel transport", func(c *chain.Chain, l *chain.Link, _ *inventory.Inventory) {
			native(c)
			l.Transport, l.Messages = "veth", &chain.Messages{Size: 1 << 20, Count: 8}
		}, "messages of 1Mi", "veth carries packets only, no messages"},
		{"messages beyond the transport", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			native(c)
			l.Messages = &chain.Messages{Size: 4 << 20, Count: 8}
			inv.Transport("shm").Caps.MaxMessage = 2 << 20
		}, "messages of 4Mi", "no transport can do this; the nearest is shm, which carries messages of at most 2Mi"},
		{"messages beyond the memory", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			native(c)
			l.Messages = &chain.Messages{Size: 4 << 20, Count: 8}
			inv.Host.MemoryFree = 63 << 20 // messages take 64 Mi: one queue in two directions
		}, "messages of 4Mi", "need 64Mi, and 63Mi of memory is available"},
		{"native face on a baseline", func(c *chain.Chain, l *chain.Link, inv *inventory.Inventory) {
			c.Functions[0].Ports[0].Face, l.Transport = chain.FaceNative, "loopback"
		}, "face native of a.p0", "loopback serves only ports with face netdev"},
	})
}

func violateEach(t *testing.T, tests []hardLink) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inv, c := loadInventory(t, "vm2"), pair()
			test.edit(c, &c.Links[0], inv)
			for _, policy := range []chain.OnInfeasible{chain.Refuse, chain.Warn} {
				c.Policy.OnInfeasible = policy
				v := mustViolate(t, c, inv)
				if v.Constraint != test.constraint || !strings.Contains(v.Reason, test.reason) || !v.Hard || v.Fix == "" || v.Subject != "link ab" {
					t.Errorf("%s: %+v", policy, v)
				}
			}
		})
	}
}

// A kernel transport shares no memory, so it satisfies every isolation level.
func TestKernelTransportsSatisfyEveryIsolation(t *testing.T) {
	for isolation := range strictness {
		c := pair()
		c.Links[0].Isolation = isolation
		p := mustPlan(t, c, loadInventory(t, "vm2"))
		if got := p.Links[0].Transport; got != "veth" {
			t.Errorf("%s: %s", isolation, got)
		}
	}
}

func TestAutoByShapeOfLink(t *testing.T) {
	inv := loadInventory(t, "server8")
	three := pair()
	three.Functions = append(three.Functions, function("c", port("p0")))
	three.Links[0].Ends = append(three.Links[0].Ends, end("c", "p0"))
	uplink := pair()
	uplink.Links[0].Ends[1] = chain.End{Uplink: "eth0"}
	for _, test := range []struct {
		name string
		c    *chain.Chain
		want string
	}{{"two ports", pair(), "veth"}, {"three ports", three, "macvlan"}, {"uplink", uplink, "macvlan"}} {
		if got := mustPlan(t, test.c, inv).Links[0].Transport; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	if got := mustPlan(t, uplink, without(inv, "macvlan")).Links[0].Transport; got != "af-packet" {
		t.Errorf("uplink without macvlan: %s, want af-packet", got)
	}
}

func without(inv *inventory.Inventory, name string) *inventory.Inventory {
	out := *inv
	out.Transports = nil
	for _, t := range inv.Transports {
		if t.Name != name {
			out.Transports = append(out.Transports, t)
		}
	}
	return &out
}

func TestLargestMTUIsCarried(t *testing.T) {
	inv := loadInventory(t, "vm2")
	inv.Transport("veth").Caps.MaxMTU = 1500
	if got := mustPlan(t, pair(), inv).Links[0].Transport; got != "veth" {
		t.Errorf("transport %s, want veth", got)
	}
}

// A transport that never ran on this host may be taken; the plan says so.
func TestNeverRunIsAllowedWithWarning(t *testing.T) {
	c := pair()
	c.Links[0].Transport = "ovs"
	c.Functions[0].Runtime = chain.RuntimeRunc
	p := mustPlan(t, c, loadInventory(t, "v2"))
	text := strings.Join(p.Warnings, "\n")
	if !strings.Contains(text, "transport ovs has never been run") || !strings.Contains(text, "runtime runc has never been run") {
		t.Errorf("warnings: %q", p.Warnings)
	}
}

func TestAutoNeverTakesABaseline(t *testing.T) {
	c := pair()
	c.Functions[0].Ports = append(c.Functions[0].Ports, port("p1"))
	c.Links[0].Ends[1] = end("a", "p1")
	inv := loadInventory(t, "vm2")
	p := mustPlan(t, c, inv)
	if p.Links[0].Transport != "veth" || len(p.Warnings) != 1 {
		t.Errorf("transport %s, warnings %q", p.Links[0].Transport, p.Warnings)
	}
	c.Links[0].Transport = "loopback"
	if p := mustPlan(t, c, inv); p.Links[0].Transport != "loopback" || len(p.Warnings) != 0 {
		t.Errorf("transport %s, warnings %q", p.Links[0].Transport, p.Warnings)
	}
}

func TestLoad(t *testing.T) {
	for _, test := range []struct {
		min, load units.Bitrate
		has       bool
		want      units.Bitrate
	}{{0, 0, false, 0}, {4e8, 0, false, 40e6}, {4e8, 1e6, true, 1e6}, {4e8, 0, true, 0}} {
		c := pair()
		l := &c.Links[0]
		l.Requires.MinBitrate, l.Load, l.HasLoad = test.min, test.load, test.has
		if got := mustPlan(t, c, loadInventory(t, "vm2")).Links[0].Load; got != test.want {
			t.Errorf("%+v: load %v", test, got)
		}
	}
}

// native gives every port of the chain that face.
func native(c *chain.Chain) {
	for i := range c.Functions {
		for j := range c.Functions[i].Ports {
			c.Functions[i].Ports[j].Face = chain.FaceNative
		}
	}
}

// The backend of a native port is memory if both ends are native and may share it, else
// packet sockets on an interface.
func TestBackendOfNativePorts(t *testing.T) {
	for name, test := range map[string]struct {
		edit      func(*chain.Chain)
		transport string
		backends  []Backend // of the two ends
	}{
		"both native":      {native, "shm", []Backend{BackendShm, BackendShm}},
		"both netdev":      {func(*chain.Chain) {}, "veth", []Backend{"", ""}},
		"one of each face": {func(c *chain.Chain) { c.Functions[1].Ports[0].Face = chain.FaceNative }, "veth", []Backend{"", BackendNetdev}},
		"nothing may be shared": {func(c *chain.Chain) {
			native(c)
			c.Links[0].Isolation = chain.IsolationNoSharedMemory
		}, "veth", []Backend{BackendNetdev, BackendNetdev}},
		"shaped": {func(c *chain.Chain) {
			native(c)
			c.Links[0].Requires.MaxBitrate = 1e9
		}, "shm", []Backend{BackendShm, BackendShm}},
		"one slice": {func(c *chain.Chain) {
			native(c)
			c.Links[0].Isolation = chain.IsolationSlice
		}, "shm", []Backend{BackendShm, BackendShm}},
		"a switch that the chain names": {func(c *chain.Chain) {
			native(c)
			c.Links[0].Transport = "bridge"
		}, "bridge", []Backend{BackendNetdev, BackendNetdev}},
	} {
		c := pair()
		test.edit(c)
		l := mustPlan(t, c, loadInventory(t, "vm2")).Links[0]
		got := []Backend{l.Ends[0].Backend, l.Ends[1].Backend}
		if l.Transport != test.transport || !slices.Equal(got, test.backends) {
			t.Errorf("%s: transport %s with %q; want %s with %q", name, l.Transport, got, test.transport, test.backends)
		}
	}
}

// The plan shows a native port's hold and the link's messages, and warns about a bound
// that nothing enforces.
func TestPlanOfHoldAndMessages(t *testing.T) {
	for isolation, warnings := range map[chain.Isolation]int{chain.IsolationLink: 0, chain.IsolationNoSharedMemory: 1} {
		c := pair()
		native(c)
		c.Links[0].Isolation = isolation
		hold := &chain.Hold{Packets: 64, Beyond: chain.BeyondCopy}
		c.Functions[0].Ports[0].Hold = hold
		if isolation == chain.IsolationLink {
			c.Links[0].Messages = &chain.Messages{Size: 1 << 20, Count: 8}
		}
		p := mustPlan(t, c, loadInventory(t, "vm2"))
		l := p.Links[0]
		if l.Ends[0].Hold != hold || l.Ends[1].Hold != nil || l.Messages != c.Links[0].Messages || len(p.Warnings) != warnings {
			t.Errorf("isolation %s: %+v, warnings %q", isolation, l, p.Warnings)
		}
	}
}

// A function that joins its own two native ports sends over the link, not through its
// kernel: no warning.
func TestNativePortsOfOneFunctionUseTheirLink(t *testing.T) {
	for face, want := range map[chain.Face]int{chain.FaceNetdev: 1, chain.FaceNative: 0} {
		c := pair()
		c.Functions[0].Ports = append(c.Functions[0].Ports, port("p1"))
		c.Functions[0].Ports[0].Face, c.Functions[0].Ports[1].Face = face, face
		c.Links[0].Ends[1] = end("a", "p1")
		if got := mustPlan(t, c, loadInventory(t, "vm2")).Warnings; len(got) != want {
			t.Errorf("face %s: warnings %q, want %d", face, got, want)
		}
	}
}

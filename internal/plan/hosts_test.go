// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// withTunnels loads a saved inventory that has tunnels between hosts.
func withTunnels(t testing.TB) *inventory.Inventory {
	t.Helper()
	inv := loadInventory(t, "vm2")
	for i, name := range []string{"vxlan", "ovs-vxlan"} {
		inv.Transports = append(inv.Transports, inventory.Transport{
			Item: inventory.Item{Name: name, Status: inventory.OK},
			Caps: inventory.Caps{
				Faces: []string{"netdev", "native", "dpdk"}, Isolation: "no-shared-memory", MinEnds: 2, Tunnel: true,
				Shapes: true, MaxMTU: 9216, Rank: 80 + i, Privileges: "none",
			},
		})
	}
	return inv
}

// apart is pair() on two simulated hosts.
func apart(u chain.Underlay) *chain.Chain {
	c := pair()
	if u.MTU == 0 {
		u.MTU = 1600
	}
	c.Hosts = &chain.Hosts{Names: []string{"h1", "h2"}, Underlay: u}
	c.Functions[0].Host, c.Functions[1].Host = "h1", "h2"
	return c
}

func TestTunnelBetweenHosts(t *testing.T) {
	p := mustPlan(t, apart(chain.Underlay{}), withTunnels(t))
	l := p.Links[0]
	if l.Transport != "vxlan" || !l.Tunnel() || l.VNI != 1 || !slices.Equal(l.Hosts, []string{"h1", "h2"}) || !strings.Contains(l.Reason, "between hosts") {
		t.Errorf("planned is %+v", l)
	}
	for _, r := range l.Rejected {
		if r.Transport == "veth" && r.Reason != "joins only ports on one host" {
			t.Errorf("veth was not taken because it %s", r.Reason)
		}
	}
	if p.Functions[1].On != "h2" || p.Functions[1].Host == "h2" {
		t.Errorf("b is placed as %+v", p.Functions[1])
	}
	var text bytes.Buffer
	if err := p.Text(&text, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hosts h1, h2 are simulated on it; underlay: no stated rate, mtu 1600", "HOST"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// TestNoTunnelOnOneHost: functions on the same simulated host are joined as usual, and
// a tunnel is refused there.
func TestNoTunnelOnOneHost(t *testing.T) {
	c := apart(chain.Underlay{})
	c.Functions[1].Host = "h1"
	if l := mustPlan(t, c, withTunnels(t)).Links[0]; l.Transport != "veth" || l.Tunnel() || l.VNI != 0 {
		t.Errorf("planned is %+v", l)
	}
	c.Links[0].Transport = "vxlan"
	wantViolation(t, c, withTunnels(t), "ends on one host")
	plain := pair()
	plain.Links[0].Transport = "ovs-vxlan"
	wantViolation(t, plain, withTunnels(t), "ends on one host")
}

func TestWhatHostsRefuse(t *testing.T) {
	c := apart(chain.Underlay{})
	c.Links[0].Transport = "veth"
	wantViolation(t, c, withTunnels(t), "hosts h1, h2")

	wantViolation(t, apart(chain.Underlay{MTU: 1549}), withTunnels(t), "mtu 1500")
	mustPlan(t, apart(chain.Underlay{MTU: 1550}), withTunnels(t))

	inv := withTunnels(t)
	inv.Qdiscs = slices.DeleteFunc(inv.Qdiscs, func(i inventory.Item) bool { return i.Name == "netem" || i.Name == "tbf" })
	v := wantViolation(t, apart(chain.Underlay{Delay: 50e3}), inv, "delay 50us")
	if !strings.Contains(v.Fix, "dray lab --need netem") || !v.Hard {
		t.Errorf("the violation is %+v", v)
	}
	wantViolation(t, apart(chain.Underlay{Rate: 1e9}), inv, "rate 1Gbps")
}

func wantViolation(t *testing.T, c *chain.Chain, inv *inventory.Inventory, constraint string) Violation {
	t.Helper()
	_, err := Make(c, inv)
	var infeasible *Infeasible
	if !errors.As(err, &infeasible) || len(infeasible.Plan.Violations) != 1 || infeasible.Plan.Violations[0].Constraint != constraint {
		t.Fatalf("error %v, want one violation of %q", err, constraint)
	}
	return infeasible.Plan.Violations[0]
}

// TestUnderlayIsEvidence: the underlay's delay adds to a tunnel's latency, and its rate
// limits the tunnel's bitrate.
func TestUnderlayIsEvidence(t *testing.T) {
	inv := withTunnels(t)
	inv.Qdiscs = []inventory.Item{{Name: "netem", Status: inventory.OK}, {Name: "tbf", Status: inventory.OK}}
	for _, c := range []struct {
		underlay chain.Underlay
		requires chain.Requires
		want     string // the expected violation; empty: none
	}{
		{chain.Underlay{}, chain.Requires{Latency: 1e6, Percentile: 99}, ""},
		{chain.Underlay{Delay: 1e6}, chain.Requires{Latency: 1e6, Percentile: 99}, "the delay of the underlay"},
		{chain.Underlay{Rate: 100e6}, chain.Requires{MinBitrate: 90e6}, ""},
		{chain.Underlay{Rate: 100e6}, chain.Requires{MinBitrate: 99e6}, "payload through the underlay at 100Mbps"},
		{chain.Underlay{Rate: 1e6}, chain.Requires{PacketRate: 1100}, ""},
		{chain.Underlay{Rate: 1e6}, chain.Requires{PacketRate: 1200}, "64-byte frames through the underlay at 1Mbps"},
	} {
		ch := apart(c.underlay)
		ch.Links[0].Requires = c.requires
		ch.Links[0].Load, ch.Links[0].HasLoad = 0, true
		_, err := Make(ch, inv)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v over %+v: error %v, want one with %q", c.requires, c.underlay, err, c.want)
		}
	}
}

// TestSwitchMemoryOfHosts: each host of a tunnel has its own switch and switch memory.
func TestSwitchMemoryOfHosts(t *testing.T) {
	c := apart(chain.Underlay{})
	p := &planner{chain: c, inv: withTunnels(t)}
	m := &inventory.PacketMemory{Other: 64 << 20, Buffers: 1024, PerPort: true, Least: 1024, Align: 1024}
	if got, want := p.needsOf(&c.Links[0]).switchMemory(m), 2*m.MiB(1500, 1); got != want {
		t.Errorf("two hosts with a port each take %d MiB, not %d", got, want)
	}
	c.Functions[1].Host = "h1"
	if got, want := p.needsOf(&c.Links[0]).switchMemory(m), m.MiB(1500, 2); got != want {
		t.Errorf("one host with two ports takes %d MiB, not %d", got, want)
	}
}

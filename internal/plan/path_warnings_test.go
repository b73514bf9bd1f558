// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

func warnings(p *Plan, about string) (all []string) {
	for _, w := range p.Warnings {
		if strings.HasPrefix(w, about) {
			all = append(all, w)
		}
	}
	return all
}

// A function without a program passes nothing on between dpdk ports.
func TestAPathThroughAnIdleFunction(t *testing.T) {
	inv := withTunnels(t)
	inv.Host.MemoryTotal = 32 << 30
	c := exampleFile(t, "ran-path.yaml")
	if w := warnings(mustPlan(t, c, inv), "path"); w != nil {
		t.Errorf("with programs: %q", w)
	}
	c.Function("du").Command = nil
	want := []string{"path dl: function du has no command, and no packets pass its dpdk port f1u without a program; give it one"}
	if w := warnings(mustPlan(t, c, inv), "path"); !slices.Equal(w, want) {
		t.Errorf("%q", w)
	}
}

// Users count up within the subnet of their port.
func TestUsersBeyondTheSubnet(t *testing.T) {
	c := pair()
	c.Functions[0].Ports[0].IP = prefix("10.60.0.1/24")
	c.Paths = []chain.Path{{Name: "n3", From: end("a", "p0"), To: end("b", "p0"), GTPU: &chain.GTPU{At: chain.SideFrom, Tunnels: 255},
		Steps: []chain.Step{{Link: "ab", Out: end("a", "p0"), In: end("b", "p0")}}}}
	inv := loadInventory(t, "vm2")
	if w := warnings(mustPlan(t, c, inv), "path n3"); w != nil {
		t.Errorf("%q", w)
	}
	want := []string{"path n3: the addresses of its 256 users count up from 10.60.0.1, the address of a.p0, beyond the subnet 10.60.0.0/24; give the port a shorter prefix, or lower tunnels"}
	c.Paths[0].GTPU.Tunnels = 256
	if w := warnings(mustPlan(t, c, inv), "path n3"); !slices.Equal(w, want) {
		t.Errorf("%q", w)
	}
	c.Paths[0].GTPU.At = chain.SideTo
	c.Functions[1].Ports[0].IP = prefix("255.255.255.1/8")
	if w := warnings(mustPlan(t, c, inv), "path n3"); len(w) != 1 || !strings.Contains(w[0], "b.p0") {
		t.Errorf("%q", w)
	}
}

// SPDX-License-Identifier: Apache-2.0

package published

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestEchoCPUs: with too few CPUs both ends share one, and the switch has the other.
func TestEchoCPUs(t *testing.T) {
	cell := func(transport string, face chain.Face) experiment.Cell {
		return experiment.Cell{Tool: experiment.ToolEcho, Transport: transport, Face: face, Runtime: chain.RuntimeProcess, Forwarding: chain.ForwardingLearning}
	}
	between := func(c experiment.Cell) experiment.Cell {
		c.Hosts, c.Underlay = 2, 1e9
		return c
	}
	for _, c := range []struct {
		cpus []int
		cell experiment.Cell
		want string
	}{
		{[]int{3, 4}, cell("polls", chain.FaceDPDK), `cpus: "3"`},
		{[]int{3, 4, 5}, cell("polls", chain.FaceDPDK), "cpus: 1,"},
		{[]int{3, 4}, cell("sleeps", chain.FaceDPDK), "cpus: 1,"},
		{[]int{3, 4, 5}, between(cell("tunnels", chain.FaceDPDK)), `cpus: "3"`},
		{[]int{3, 4, 5, 6}, between(cell("tunnels", chain.FaceDPDK)), "cpus: 1,"},
		{[]int{3}, cell("polls", chain.FaceDPDK), ""},
		{[]int{3, 4}, cell("sleeps", chain.FaceNetdev), ""},
	} {
		inv := &inventory.Inventory{
			Host: inventory.Host{CPUs: c.cpus},
			Transports: []inventory.Transport{
				{Item: inventory.Item{Name: "polls"}, Caps: inventory.Caps{BusyCPUs: 1}}, {Item: inventory.Item{Name: "sleeps"}},
				{Item: inventory.Item{Name: "tunnels"}, Caps: inventory.Caps{BusyCPUs: 1, Tunnel: true}},
			},
		}
		text := echoText(inv, c.cell)
		if got := strings.Count(text, c.want); c.want != "" && got != 2 || c.want == "" && strings.Contains(text, "cpus") {
			t.Errorf("CPUs %v, %s: %s", c.cpus, c.cell, text)
		}
		const hosts = "hosts: {names: [h1, h2], underlay: {rate: 1Gbps}}"
		if apart := strings.Contains(text, hosts) && strings.Contains(text, "host: h2,"); apart != (c.cell.Hosts > 0) {
			t.Errorf("%s: %s", c.cell, text)
		}
		if !strings.Contains(text, "forwarding: learning") || strings.Count(text, "face: "+string(c.cell.Face)) != 2 {
			t.Errorf("%s: %s", c.cell, text)
		}
	}
}

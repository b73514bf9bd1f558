// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestEnvironmentOfSwitch: every record states a switch's shaping, although no port
// has a qdisc for it.
func TestEnvironmentOfSwitch(t *testing.T) {
	shape := func(at chain.Place) *chain.Qdisc { return &chain.Qdisc{Kind: "htb", Rate: 1e8, At: at} }
	report := func(end string) *transport.Report {
		return &transport.Report{Qdiscs: []transport.QdiscState{{End: end, Kind: "htb", Text: "rate 100Mbit"}, {End: "du.own", Kind: "tbf"}}}
	}
	live := &node.Live{State: node.State{
		Plan: &plan.Plan{Links: []plan.Link{
			{Name: "f1", Shape: shape(chain.AtSwitch)}, {Name: "f2", Shape: shape(chain.AtPort)}, {Name: "f3"},
			{Name: "f4", Shape: shape(chain.AtSwitch)}, // it was not made
		}},
		Reports: map[string]*transport.Report{"f1": report("du.p at the switch"), "f2": report("p"), "f3": {}},
	}}
	env := Environment(&inventory.Inventory{}, live, "")
	if len(env.Qdiscs) != 1 || env.Qdiscs["f1: du.p at the switch"] != "htb rate 100Mbit" {
		t.Errorf("the records have the qdiscs %v", env.Qdiscs)
	}
}

func TestEnvironmentOfHost(t *testing.T) {
	env := OfHost(inventory.Host{Kernel: "6.1", CPUs: []int{0, 1}, Governor: "none", Load1: 0.5,
		HugePages: []inventory.HugePg{{Size: 2 << 20, Total: 512}, {Size: 1 << 30, Total: 2}, {Size: 64 << 10, Total: 1}}})
	if env.Kernel != "6.1" || len(env.CPUs) != 2 || env.LoadBefore != 0.5 || env.HugePages["2Mi"] != 512 || env.HugePages["1Gi"] != 2 || env.HugePages["64Ki"] != 1 {
		t.Errorf("%+v", env)
	}
}

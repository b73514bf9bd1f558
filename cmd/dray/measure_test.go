// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// TestEnvironmentOfSwitch: what a switch shapes is told by every record, although no
// port has a qdisc for it.
func TestEnvironmentOfSwitch(t *testing.T) {
	shape := func(at chain.Place) *chain.Qdisc { return &chain.Qdisc{Kind: "htb", Rate: 1e8, At: at} }
	report := func(end string) *transport.Report {
		return &transport.Report{Qdiscs: []transport.QdiscState{{End: end, Kind: "htb", Text: "rate 100Mbit"}}}
	}
	live := &node.Live{State: node.State{
		Plan: &plan.Plan{Links: []plan.Link{
			{Name: "f1", Shape: shape(chain.AtSwitch)}, {Name: "f2", Shape: shape(chain.AtPort)}, {Name: "f3"},
			{Name: "f4", Shape: shape(chain.AtSwitch)}, // it was not made
		}},
		Reports: map[string]*transport.Report{"f1": report("du.p at the switch"), "f2": report("p"), "f3": {}},
	}}
	env := environmentOf(&inventory.Inventory{}, live)
	if len(env.Qdiscs) != 1 || env.Qdiscs["f1: du.p at the switch"] != "htb rate 100Mbit" {
		t.Errorf("the records have the qdiscs %v", env.Qdiscs)
	}
}

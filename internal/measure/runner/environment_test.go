// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"maps"
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

// The records have the qdiscs of ports that queue in user space, in a form from which the
// verdicts read the rate.
func TestEnvironmentOfUserQueues(t *testing.T) {
	ordered := func(q chain.Qdisc) *chain.Qdisc {
		made, err := q.InPort(1500)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	end := func(name string, q *chain.Qdisc) plan.End {
		return plan.End{Function: name, Port: "p", Face: chain.FaceNative, Backend: plan.BackendShm, Shape: q}
	}
	shaped := ordered(chain.Qdisc{Kind: "tbf", Rate: 1e8, Latency: 1e6, Burst: 4000})
	atSwitch := ordered(chain.Qdisc{Kind: "prio", At: chain.AtSwitch, Classes: []chain.Class{{Name: "x"}}})
	live := &node.Live{State: node.State{Plan: &plan.Plan{Links: []plan.Link{
		{Name: "l", Shape: shaped, Ends: []plan.End{end("a", nil), end("b", ordered(chain.Qdisc{Kind: "sfq"}))}},
		{Name: "m", Shape: atSwitch, Ends: []plan.End{end("c", nil)}},
		{Name: "n", Ends: []plan.End{end("d", nil)}},
	}}}}
	want := map[string]string{
		"a.p":                  "tbf rate 100Mbps burst 4k over bfifo limit 16500, as ordered in user space",
		"b.p":                  "sfq limit 127, as ordered in user space",
		"m: c.p at the switch": "prio with 1 classes, as ordered in user space",
	}
	if got := Environment(&inventory.Inventory{}, live, "").Qdiscs; !maps.Equal(got, want) {
		t.Errorf("the records have the qdiscs %v", got)
	}
}

func TestEnvironmentOfHost(t *testing.T) {
	env := OfHost(inventory.Host{Kernel: "6.1", CPUs: []int{0, 1}, Governor: "none", Load1: 0.5,
		HugePages: []inventory.HugePg{{Size: 2 << 20, Total: 512}, {Size: 1 << 30, Total: 2}, {Size: 64 << 10, Total: 1}}})
	if env.Kernel != "6.1" || len(env.CPUs) != 2 || env.LoadBefore != 0.5 || env.HugePages["2Mi"] != 512 || env.HugePages["1Gi"] != 2 || env.HugePages["64Ki"] != 1 {
		t.Errorf("%+v", env)
	}
}

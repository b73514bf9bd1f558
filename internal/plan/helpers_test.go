// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// loadInventory reads a saved inventory.
func loadInventory(t testing.TB, name string) *inventory.Inventory {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "inventories", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var inv inventory.Inventory
	if err := json.Unmarshal(data, &inv); err != nil {
		t.Fatalf("inventory %s: %v", name, err)
	}
	return &inv
}

func port(name string) chain.Port {
	return chain.Port{Name: name, Face: chain.FaceNetdev, MTU: 1500, Queues: 1}
}

func function(name string, ports ...chain.Port) chain.Function {
	return chain.Function{Name: name, Runtime: chain.RuntimeProcess, Restart: chain.RestartNever, Ports: ports}
}

func end(function, port string) chain.End { return chain.End{Function: function, Port: port} }

// pair is the smallest chain: functions a and b, joined by the link "ab".
func pair() *chain.Chain {
	return &chain.Chain{
		APIVersion: parse.APIVersion,
		Kind:       chain.Kind,
		Name:       "pair",
		Policy:     chain.Policy{OnInfeasible: chain.Refuse},
		Functions:  []chain.Function{function("a", port("p0")), function("b", port("p0"))},
		Links: []chain.Link{{
			Name:      "ab",
			Ends:      []chain.End{end("a", "p0"), end("b", "p0")},
			Transport: chain.TransportAuto,
			Isolation: chain.IsolationLink,
		}},
	}
}

// mustPlan fails the test if the chain is infeasible.
func mustPlan(t testing.TB, c *chain.Chain, inv *inventory.Inventory) *Plan {
	t.Helper()
	p, err := Make(c, inv)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mustViolate returns the single violation of an infeasible chain.
func mustViolate(t testing.TB, c *chain.Chain, inv *inventory.Inventory) Violation {
	t.Helper()
	p, err := Make(c, inv)
	var infeasible *Infeasible
	if !errors.As(err, &infeasible) {
		t.Fatalf("got plan %v and error %v, want an *Infeasible", p, err)
	}
	if n := len(infeasible.Plan.Violations); n != 1 {
		t.Fatalf("%d violations, want 1: %v", n, err)
	}
	return infeasible.Plan.Violations[0]
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func ratio(r units.Ratio) *units.Ratio { return &r }

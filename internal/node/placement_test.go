// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/plan"
)

// machinesYAML is the pair on one of two hosts that the planner chooses.
var machinesYAML = strings.Replace(pairYAML, "functions:", "hosts: {machines: [{name: h1, cpus: 1}, {name: h2, cpus: 1}]}\nfunctions:", 1)

// TestAPlacementStaysWhileAChainIsUp: a changed file is planned with the hosts in use, also
// if another placement would do.
func TestAPlacementStaysWhileAChainIsUp(t *testing.T) {
	l := &Live{}
	l.Chain, l.State.Plan = planned(t, machinesYAML)
	for i := range l.State.Plan.Functions {
		l.State.Plan.Functions[i].On = "h2"
	}
	l.State.Plan.PlaceIn(l.Chain)
	l.State.Sandboxes = map[string]*runtime.Sandbox{"a": {}, "b": {}}
	c, _ := planned(t, machinesYAML)
	l.Pin(c, false)
	for _, f := range c.Functions {
		if f.Host != "h2" {
			t.Errorf("%s would be planned on %q", f.Name, f.Host)
		}
	}
	if changes := l.Difference(c, l.State.Plan, Wrong{}); len(changes) > 0 {
		t.Errorf("the same chain differs: %+v", changes)
	}
}

var linedYAML = strings.Replace(machinesYAML, "]}\nfunctions", "], lines: [{between: [h1, h2]}]}\nfunctions", 1)

func TestHostsThatCannotBeSimulatedAreRefused(t *testing.T) {
	c, p := planned(t, linedYAML)
	p.Unsimulated = []plan.Violation{{Subject: "the line", Reason: "is too long"}}
	_, err := (&Node{}).Create(context.Background(), "up", c, nil, p)
	var infeasible *plan.Infeasible
	if !errors.As(err, &infeasible) || !strings.Contains(err.Error(), "is too long") {
		t.Errorf("error %v", err)
	}
}

// TestHeldCPUsOnLines: the file's CPUs are those of its hosts, and a plan keeps those of
// this machine next to them.
func TestHeldCPUsOnLines(t *testing.T) {
	text := strings.Replace(linedYAML, "name: a, runtime", "name: a, cpus: 1, runtime", 1)
	l := &Live{}
	l.Chain, l.State.Plan = planned(t, text)
	l.State.Plan.Functions[0].CPUs = []int{3}
	c, _ := planned(t, text)
	l.Pin(c, false)
	if f, held := c.Functions[0], l.HeldCPUs(c).Functions; f.CPUs.Count != 1 || !slices.Equal(held["a"], []int{3}) {
		t.Errorf("a asks for %+v, and keeps %v", f.CPUs, held["a"])
	}
	c.Functions[0].CPUs.Count = 2
	if held := l.HeldCPUs(c).Functions; held["a"] != nil {
		t.Errorf("with other CPUs it keeps %v", held["a"])
	}
	c, _ = planned(t, strings.Replace(pairYAML, "name: a, runtime", "name: a, cpus: 1, runtime", 1))
	if held := l.HeldCPUs(c).Functions; len(held) > 0 {
		t.Errorf("without lines, %v is held", held)
	}
}

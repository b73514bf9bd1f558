// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
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
	if changes := l.Difference(c, l.State.Plan); len(changes) > 0 {
		t.Errorf("the same chain differs: %+v", changes)
	}
}

func TestHostsWithLinesAreOnlyPlanned(t *testing.T) {
	c, _ := planned(t, strings.Replace(machinesYAML, "]}\nfunctions", "], lines: [{between: [h1, h2]}]}\nfunctions", 1))
	_, err := (&Node{}).Create(context.Background(), "up", c, nil, &plan.Plan{Hosts: c.Hosts})
	if err == nil || !strings.Contains(err.Error(), "can only be planned") {
		t.Errorf("error %v", err)
	}
}

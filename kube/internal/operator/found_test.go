// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// A placement is searched again when something changes of what it depends on, and only then.
func TestAPlacementIsSearchedOnce(t *testing.T) {
	b := newPlacedBench(t, "1", "1") // too few for du
	b.reconcile()
	of := client.ObjectKeyFromObject(newChain(placedSpec))
	last := b.r.found.last[of]
	last.placed.Refusal = "as before"
	b.r.found.last[of] = last
	b.wants(b.reconcile(), v1alpha1.ConditionPlanned, no, v1alpha1.ReasonInfeasible, "as before")
	b.edit("n2", cordon)
	if c := b.reconcile(); strings.Contains(c.Status.Conditions[0].Message, "as before") {
		t.Errorf("a node has changed: %+v", c.Status.Conditions)
	}
	other := newChain(placedSpec)
	other.UID = "another"
	site := &fleet.Site{}
	if was := b.r.found.last[of]; b.r.found.place(other, site, nil, nil).asked == was.asked {
		t.Error("another chain of that name is the same")
	}
	b.r.found.forget(of)
	if len(b.r.found.last) > 0 {
		t.Error("a chain that is gone is not forgotten")
	}
}

// A cache lists objects in any order.
func TestTheOrderOfNodesChangesNothing(t *testing.T) {
	q := question{Nodes: []fleet.Node{{Name: "a"}, {Name: "b"}}, Machines: []fleet.Machine{{Name: "a"}, {Name: "b"}}}
	sum, err := q.sum()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(q.Nodes)
	slices.Reverse(q.Machines)
	if again, _ := q.sum(); again != sum {
		t.Error("the other order is another question")
	}
	q.Machines[0].CPUs = 1
	if other, _ := q.sum(); other == sum {
		t.Error("more CPUs are the same question")
	}
}

// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

func onCPUs(name string, share bool, cpus ...int) plan.Function {
	f := plan.Function{Name: name, Runtime: chain.RuntimeProcess, CPUs: cpus}
	if share {
		f.Compute = &chain.Compute{Share: 0.3, Deadline: 10e6}
	}
	return f
}

func TestNeighbourhoods(t *testing.T) {
	vm := onCPUs("vm", false, 1)
	vm.Runtime = chain.RuntimeVM
	p := &plan.Plan{Functions: []plan.Function{
		onCPUs("a", true, 1), onCPUs("any", false), onCPUs("own", false, 4), onCPUs("b", true, 2, 3), onCPUs("c", true, 1), vm, onCPUs("d", false, 3, 5), onCPUs("e", false, 5),
	}}
	var got []string
	for _, g := range neighbourhoods(p) {
		names := functionNames(g)
		slices.Sort(names)
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{"a c", "b d e"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if busy := functionNames(others(p.Functions, p.Functions[3])); !slices.Equal(busy, []string{"d"}) {
		t.Errorf("the neighbours of b are %q", busy)
	}
}

// One trial measures all functions of a CPU, and a resumed run repeats none.
func TestComputeIsSized(t *testing.T) {
	in := Input{Plan: &plan.Plan{Functions: []plan.Function{onCPUs("a", true, 1), onCPUs("c", true, 1)}}, Options: Options{Profile: Quick}}
	whole := EstimateCompute(in)
	if whole < 3*(shortest/2) || whole > 20*time.Second {
		t.Errorf("about %v", whole)
	}
	for _, id := range []string{"share-a-r0", "share-c-r0"} {
		in.Earlier = append(in.Earlier, record.Trial{ID: id})
	}
	if left := EstimateCompute(in); left >= whole {
		t.Errorf("about %v are left of %v", left, whole)
	}
	in.Earlier = in.Earlier[:1]
	if left := EstimateCompute(in); left != whole {
		t.Errorf("with one trial of two, about %v are left of %v", left, whole)
	}
	in.Plan.Functions[0].Compute.Deadline = 900e6
	if got := in.computeLength(in.Plan.Functions); got != 1800*time.Millisecond {
		t.Errorf("trials of %v", got)
	}
	if in.Options.Duration = time.Second; in.computeLength(in.Plan.Functions) != time.Second {
		t.Error("the user's length does not count")
	}
}

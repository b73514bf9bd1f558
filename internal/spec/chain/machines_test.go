// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/spec/units"
)

func TestMachinesAreRead(t *testing.T) {
	c, err := Load("testdata/good/machines.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Hosts{
		Names: []string{"site", "edge", "core"},
		Machines: []Machine{
			{Name: "site", NUMA: []NUMANode{{CPUs: CPURequest{Set: []int{0, 1, 2, 3}}, Memory: 8 << 30}}},
			{Name: "edge", NUMA: []NUMANode{
				{CPUs: CPURequest{Set: []int{0, 1, 2, 3, 4, 5, 6, 7}}, Memory: 64 << 30},
				{CPUs: CPURequest{Set: []int{8, 9, 10, 11, 12, 13, 14, 15}}},
			}},
			{Name: "core", NUMA: []NUMANode{{CPUs: CPURequest{Count: 32}}}},
		},
		Lines: []HostLine{
			{Between: []string{"site", "edge"}, Rate: 25e9, Length: 12_500},
			{Between: []string{"edge", "core"}, Delay: 1e6, Length: 40_000},
		},
		Underlay: Underlay{MTU: 9000},
	}
	if diff := cmp.Diff(want, c.Hosts, ignorePositions); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if !c.Hosts.Lined() {
		t.Error("hosts with lines are taken for simulated ones")
	}
	for i, want := range []time.Duration{62500 * time.Nanosecond, 1200 * time.Microsecond} {
		if got := c.Hosts.Lines[i].OneWay(); got != want {
			t.Errorf("line %d has a delay of %v, not %v", i, got, want)
		}
	}
	if diff := cmp.Diff(c, throughJSON(t, c), comparePrefixes, ignorePositions, ignoreHasLoad); diff != "" {
		t.Errorf("before (-) and after JSON (+) differ:\n%s", diff)
	}
}

// TestSplitsFillInRequirements: the end nearest to the antenna decides, and what the link
// states stays.
func TestSplitsFillInRequirements(t *testing.T) {
	c, err := Load("testdata/good/machines.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Requires{
		{Latency: 250e3, Percentile: 50, MinBitrate: 400e6},
		{Latency: 1500e3, Percentile: 99, MinBitrate: 4016e6},
		{Latency: 10e6, Percentile: 99},
	} {
		if diff := cmp.Diff(want, c.Links[i].Requires, ignorePositions); diff != "" {
			t.Errorf("link %s, want (-), got (+):\n%s", c.Links[i].Name, diff)
		}
	}
}

// TestSplitBudgetsGrowTowardsTheAntenna: a split nearer to the antenna never allows more
// delay than option 2, nor needs less than option 1.
func TestSplitBudgetsGrowTowardsTheAntenna(t *testing.T) {
	for _, b := range SplitBudgets[2:] {
		if b.Latency > Split("2").Budget().Latency || b.Bitrate != 0 && b.Bitrate < Split("1").Budget().Bitrate {
			t.Errorf("split %s allows %v at %v", b.Split, b.Latency, units.Bitrate(b.Bitrate))
		}
	}
	if Split("9").Budget() != nil {
		t.Error("an unknown split has a budget")
	}
}

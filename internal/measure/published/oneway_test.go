// SPDX-License-Identifier: Apache-2.0

package published

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

// TestTwoWay: whatever the clocks' difference, the latency is the mean of both ways.
func TestTwoWay(t *testing.T) {
	for _, between := range []time.Duration{0, 700 * time.Microsecond, -3 * time.Second} {
		latency, difference := twoWay(40*time.Microsecond+between, 40*time.Microsecond-between)
		if latency != 40*time.Microsecond || difference != between {
			t.Errorf("clocks %v apart: latency %v, difference %v", between, latency, difference)
		}
	}
	if latency, difference := twoWay(10, 30); latency != 20 || difference != -10 {
		t.Errorf("unequal ways: latency %v, difference %v", latency, difference)
	}
}

// TestKernelDatapath: a cell that asks for the kernel's datapath, also of a tunnel, is
// measured in the lab if this kernel has none.
func TestKernelDatapath(t *testing.T) {
	for _, c := range []experiment.Cell{
		{Tool: experiment.ToolOneWay, Transport: "ovs", Runtime: chain.RuntimeRunc, Load: "1Mbps", Datapath: experiment.DatapathKernel},
		{Tool: experiment.ToolTCP, Transport: "ovs-vxlan", Runtime: chain.RuntimeRunc, Hosts: 2, Datapath: experiment.DatapathKernel},
	} {
		_, err := chain.Parse(c.String(), chainText(host2(), c))
		testenv.Must(t, err)
		inGuest, _ := Divide(host2(), Lab{Obstacle: func(chain.VMKernel) string { return "" }}, []experiment.Cell{c})
		if inGuest[c.String()] != chain.VMKernelGeneric {
			t.Errorf("%s is not measured in the lab: %v", c, inGuest)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

// TestARefusalByStatedDefaultSuggestsToMeasure: a stated default is cautious, so the
// host may meet the requirement. A calibration was measured, so it suggests nothing.
func TestARefusalByStatedDefaultSuggestsToMeasure(t *testing.T) {
	for _, test := range []struct {
		inventory string
		transport string
		want      bool
	}{{"vm2", "veth", true}, {"calibrated", "veth", false}} {
		c := pair()
		c.Links[0].Transport, c.Links[0].Requires.PacketRate = test.transport, 50e6
		v := mustViolate(t, c, loadInventory(t, test.inventory))
		if got := strings.Contains(v.Fix, "run `dray calibrate "+test.transport+"`"); got != test.want {
			t.Errorf("%s: %s", test.inventory, v.Fix)
		}
	}
	// No calibration covers a tunnel: its underlay belongs to the chain.
	inv := withTunnels(t)
	ch := apart(chain.Underlay{})
	ch.Links[0].Requires.PacketRate = 50e6
	if v := mustViolate(t, ch, inv); strings.Contains(v.Fix, "calibrate") {
		t.Errorf("a tunnel: %s", v.Fix)
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

// TestARefusalByStatedDefaultSuggestsToMeasure: a stated default is cautious, so
// that the host itself may well do what is refused. A calibration has been measured.
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
	// Nothing can calibrate a tunnel: its underlay is the chain's.
	inv := withTunnels(t)
	ch := apart(chain.Underlay{})
	ch.Links[0].Requires.PacketRate = 50e6
	if v := mustViolate(t, ch, inv); strings.Contains(v.Fix, "calibrate") {
		t.Errorf("a tunnel: %s", v.Fix)
	}
}

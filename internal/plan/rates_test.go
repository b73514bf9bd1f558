// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

func TestDemandOfALink(t *testing.T) {
	requires := chain.Requires{MinBitrate: 1e9, PacketRate: 1e6}
	v6 := []End{{IP: netip.MustParsePrefix("fd00::1/64")}}
	for name, test := range map[string]struct {
		link Link
		want Rates
	}{
		"full frames":  {Link{MTU: 1500, Requires: requires}, Rates{1e9, 1e6}},
		"large frames": {Link{MTU: 9000, Requires: requires}, Rates{1e9, 1e6}}, // not assumed to be cheaper
		"half frames":  {Link{MTU: 1500, Frame: 736 + 46, Requires: requires}, Rates{2e9, 1e6}},
		"IPv6":         {Link{MTU: 1500, Ends: v6, Frame: 736 + 66, Requires: requires}, Rates{2e9, 1e6}},
		"TCP":          {Link{MTU: 1500, Traffic: chain.TrafficTCP, Requires: requires}, Rates{0, 1e6}},
		"nothing":      {Link{MTU: 1500}, Rates{}},
	} {
		if got := test.link.Demand(); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestCalibratedRates(t *testing.T) {
	inv := &inventory.Inventory{Calibration: []inventory.Calibration{
		{Transport: "shm", UDPBitrate: 5e9, PacketRate: 8e6},
		{Transport: "bridge", UDPBitrate: 1e9, PacketRate: 1e5, Stale: "another kernel"},
	}}
	for transport, want := range map[string]Rates{"shm": {5e9, 8e6}, "bridge": {}, "veth": {}} {
		if got := Calibrated(inv, transport); got != want {
			t.Errorf("%s: %+v, want %+v", transport, got, want)
		}
	}
}

// checkDemand requires that a calibration that meets a link's requirements covers what the
// link demands: otherwise a feasible chain would not fit on any node.
func checkDemand(l *Link, inv *inventory.Inventory) string {
	for _, e := range l.Evidence {
		if !e.Meets {
			return ""
		}
	}
	demand, proven := l.Demand(), Calibrated(inv, l.Transport)
	if proven.Bitrate > 0 && demand.Bitrate > proven.Bitrate || proven.PacketRate > 0 && demand.PacketRate > proven.PacketRate {
		return fmt.Sprintf("link %s demands %+v of %s, which carries %+v", l.Name, demand, l.Transport, proven)
	}
	return ""
}

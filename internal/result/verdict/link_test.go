// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// TestLiveNamesWhatIsJudgedLive judges a link that requires everything.
func TestLiveNamesWhatIsJudgedLive(t *testing.T) {
	ratio := units.Ratio(0.1)
	l := plan.Link{Name: "ab", Requires: chain.Requires{
		Latency: 1, PDV: 1, LossRatio: &ratio, MinBitrate: 1, MaxBitrate: 2, PacketRate: 1, MTU: 1500,
	}}
	live := map[string]bool{}
	for _, v := range JudgeLive(l, nil) {
		live[v.Requirement] = true
	}
	all := Judge(FromPlan(l), nil)
	if len(live) != 3 || len(all) != 7 {
		t.Fatalf("%d of %d requirements are judged live", len(live), len(all))
	}
	for _, v := range all {
		if Live(v.Requirement) != live[v.Requirement] {
			t.Errorf("%s: Live is %v", v.Requirement, Live(v.Requirement))
		}
	}
}

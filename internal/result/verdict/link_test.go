// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// TestWhatIsJudgedLive judges a link that requires everything.
func TestWhatIsJudgedLive(t *testing.T) {
	ratio := units.Ratio(0.1)
	l := plan.Link{Name: "ab", Requires: chain.Requires{
		Latency: 1, PDV: 1, LossRatio: &ratio, MinBitrate: 1, MaxBitrate: 2, PacketRate: 1, MTU: 1500,
	}}
	judged := func(l plan.Link) (all []string) {
		for _, v := range JudgeLive(l, nil) {
			all = append(all, v.Requirement)
		}
		return all
	}
	want := []string{"latency", "packet_delay_variation", "packet_loss_ratio", "min_bitrate", "packet_rate"}
	if got := judged(l); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	l.Traffic = chain.TrafficTCP
	if got := judged(l); slices.Contains(got, "min_bitrate") {
		t.Errorf("with TCP: %q", got)
	}
	if all := Judge(FromPlan(l), nil); len(all) != 7 {
		t.Errorf("%d of 7 requirements are judged", len(all))
	}
	for i, r := range want {
		if Live(r) != (i < 3) {
			t.Errorf("%s: Live is %v", r, Live(r))
		}
	}
}

func TestAPathMayBeJudgedInOneDirection(t *testing.T) {
	l := plan.Link{Name: "dl", Ends: []plan.End{{Function: "a", Port: "x"}, {Function: "b", Port: "x"}}, Requires: chain.Requires{MinBitrate: 1}, Course: &plan.Course{}}
	if v := Judge(FromPlan(l), nil); len(v) != 1 || !v[0].Path || len(v[0].Directions) != 2 {
		t.Errorf("both directions: %+v", v)
	}
	l.Course.Forward = true
	if v := Judge(FromPlan(l), nil); len(v[0].Directions) != 1 || v[0].Directions[0].Direction != "a.x → b.x" {
		t.Errorf("forward: %+v", v)
	}
}

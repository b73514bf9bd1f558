// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// TestAFullQueueDelays checks how long packets wait in a queue whose load exceeds its rate.
func TestAFullQueueDelays(t *testing.T) {
	slot := &chain.Qdisc{Kind: "slot", Slot: units.Duration(500 * time.Microsecond), Limit: 512}
	for _, test := range []struct {
		q    chain.Qdisc
		want time.Duration
	}{
		{chain.Qdisc{Kind: "tbf", Rate: 100e6, Latency: units.Duration(20 * time.Millisecond)}, 20 * time.Millisecond},
		{chain.Qdisc{Kind: "tbf", Rate: 121.12e6, Child: &chain.Qdisc{Kind: "pfifo", Limit: 100}}, 10 * time.Millisecond},
		{chain.Qdisc{Kind: "tbf", Rate: 121.12e6, Child: slot}, 500 * time.Microsecond},
		{chain.Qdisc{Kind: "tbf", Rate: 121.12e9, Child: slot}, 51200 * time.Nanosecond}, // the limit of packets
		{chain.Qdisc{Kind: "htb", Rate: 121.12e6, Classes: []chain.Class{
			{Child: &chain.Qdisc{Kind: "bfifo", Limit: 15140}}, {Child: slot}}}, 1500 * time.Microsecond},
	} {
		if got := queueBound(&test.q, 1500); got != float64(test.want) {
			t.Errorf("a full %s delays by %v, not %v", test.q.Kind, time.Duration(got), test.want)
		}
	}
}

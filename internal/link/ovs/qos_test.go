// SPDX-License-Identifier: Apache-2.0

package ovs

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

// TestQosRows: only a shaper has a queue with rates, which Open vSwitch would
// refuse below another discipline.
func TestQosRows(t *testing.T) {
	for want, q := range map[string]chain.Qdisc{
		"type=linux-htb other_config:max-rate=2000 queues:0=@queue -- --id=@queue create Queue other_config:min-rate=1000 other_config:max-rate=2000 other_config:burst=80": {Kind: "htb", Rate: 1000, Ceil: 2000, Burst: 10},
		"type=linux-hfsc other_config:max-rate=1000 queues:0=@queue -- --id=@queue create Queue other_config:min-rate=1000 other_config:max-rate=1000":                      {Kind: "hfsc", Rate: 1000},
		"type=linux-sfq":                           {Kind: "sfq"},
		"type=linux-codel":                         {Kind: "codel"},
		"type=linux-fq_codel other_config:limit=7": {Kind: "fq_codel", Limit: 7},
		"type=linux-codel other_config:target=1000 other_config:interval=20000": {Kind: "codel", Target: 1e6, Interval: 20e6},
	} {
		if got := strings.Join(qosRows(q), " "); got != "-- --id=@qos create QoS "+want {
			t.Errorf("%s: %s", q.Kind, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package underlay

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// TestLimit: a line with delay holds all packets in flight, plus the longest
// ones that fit into the queueing time.
func TestLimit(t *testing.T) {
	const mtu = 1486 // 1500 bytes with the header: 12 kbit
	for _, test := range []struct {
		rate  units.Bitrate
		delay time.Duration
		want  int
	}{
		{1.2e9, 64 * time.Microsecond, 150 + 2000},
		{1.2e9, 64 * time.Millisecond, 150000 + 2000},
		{1e6, time.Millisecond, leastQueue},
		{0, 64 * time.Microsecond, 5000 + 66666},
	} {
		s := Spec{Hosts: chain.Hosts{Underlay: chain.Underlay{MTU: mtu}}}
		if q := s.shaper(test.rate, test.delay); q.Kind != "netem" || q.Limit != test.want || q.Latency != test.delay || q.Rate != uint64(test.rate) {
			t.Errorf("%v, %v: %+v; want %d packets", test.rate, test.delay, *q, test.want)
		}
	}
}

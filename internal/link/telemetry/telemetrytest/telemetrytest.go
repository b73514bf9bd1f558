// SPDX-License-Identifier: Apache-2.0

// Package telemetrytest generates broker reports of a link, for tests.
package telemetrytest

import (
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
)

// Reported is a link over which a sends to b at a constant rate. After n seconds,
// 100,000 packets a second have passed and 1,000 were stamped, each with a latency
// just under highNs. The tick-rate estimate improves every second.
func Reported(n uint64, highNs float64, lost uint64) broker.LinkStatus {
	highNs *= 1 - 1e-9/float64(n+1)
	return broker.LinkStatus{
		Name: "ab", Kind: "shm", State: broker.StateActive, Generation: 1, Pages: "plain", Bytes: 1 << 20,
		Ends: []broker.EndStatus{
			{Function: "a", Port: "p0", Connected: true, PID: 10, Counters: broker.Counters{TxPackets: n * 100_000, TxBytes: n * 6_400_000}},
			{Function: "b", Port: "p0", Connected: true, PID: 11, Counters: broker.Counters{RxPackets: n * 100_000, RxBytes: n * 6_400_000, RxDropped: lost},
				Latency: broker.Latency{Count: n * 1000, Buckets: []broker.Bucket{

					{Index: 300, Low: highNs / 2, High: highNs * 0.75, Count: n * 500},
					{Index: 301, Low: highNs * 0.75, High: highNs, Count: n * 500},
				}}},
		},
	}
}

// Snapshot is a snapshot of chain c at that second.
func Snapshot(second int, links ...broker.LinkStatus) telemetry.Snapshot {
	return telemetry.Snapshot{At: time.Unix(int64(second), 0), Chain: "c", Links: links}
}

// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

func TestUntimelyMessages(t *testing.T) {
	trial := record.Trial{
		Delivery: &record.Delivery{Sent: 100, Received: 90, Lost: 10, ReceiverDrops: 4},
		Windows:  record.Windows{"c_plane": {OnTime: 5, Late: 1}, "u_plane": {Early: 2, OnTime: 79, SentLate: 3}},
	}
	// 6 lost by the link, 2 early, 1 late; of 100 without 3 sent late and 4 not read.
	if c, ok := untimely(trial); !ok || c != (stats.Cluster{Events: 9, N: 93}) {
		t.Errorf("%+v, %v", c, ok)
	}
	trial.Windows["u_plane"] = record.Window{Early: 2, OnTime: 79, SentLate: 96}
	if _, ok := untimely(trial); ok {
		t.Error("a trial whose messages were all sent late is a figure")
	}
	trial.Windows = nil
	if _, ok := untimely(trial); ok {
		t.Error("a trial without windows is a figure")
	}
}

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/measure/search"
	"github.com/drayage/dray/internal/result/record"
)

func TestOutcome(t *testing.T) {
	stream := record.Trial{
		Delivery: &record.Delivery{Sent: 990, Received: 980, Lost: 10, ReceiverDrops: 4},
		OneWay: &record.OneWay{Unsent: 10, Lateness: record.Histogram{Bits: 6, Counts: []record.BucketCount{
			{Value: 20, Count: 980}, {Value: 50, Count: 5}, {Value: 63, Count: 5}}}},
	}
	o, err := outcome(stream)
	want := search.Outcome{Sent: 990, Received: 980, Unsent: 10, ReceiverDrops: 4, Lateness: 50}
	if err != nil || o != want {
		t.Errorf("%+v, %v; want %+v", o, err, want)
	}
	if o.LossRatio() < 0.0199 || o.LossRatio() > 0.0201 {
		t.Errorf("loss ratio %g, want 20 of 1000", o.LossRatio())
	}
	var rejected *search.RejectedError
	if _, err := outcome(record.Trial{Error: "the sink died"}); !errors.As(err, &rejected) || rejected.Reason != "the sink died" {
		t.Errorf("a failed trial: %v, want it rejected", err)
	}
	_, err = outcome(record.Trial{ID: "x", Instrument: record.Instrument{Name: "iperf"}, Delivery: stream.Delivery})
	if err == nil || errors.As(err, &rejected) || !strings.Contains(err.Error(), "iperf") {
		t.Errorf("an instrument that does not report unsent packets: %v, want it refused", err)
	}
	stream.OneWay = &record.OneWay{Lateness: record.Histogram{Bits: 99}}
	if _, err := outcome(stream); !errors.As(err, &rejected) {
		t.Errorf("a malformed histogram: %v, want it rejected", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"slices"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/broker/wire"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/link/telemetry/telemetrytest"
)

func TestBetweenGivesRatesAndOnlyNewSamples(t *testing.T) {
	flows := telemetry.Between(telemetrytest.Snapshot(1, telemetrytest.Reported(1, 2000, 0)), telemetrytest.Snapshot(3, telemetrytest.Reported(3, 2000, 7)))
	if len(flows) != 2 {
		t.Fatalf("%d flows", len(flows))
	}
	f := flows[0]
	if f.From != "a.p0" || f.To != "b.p0" || f.PacketRate() != 100_000 || f.Bitrate() != 51_200_000 || f.Lost != 7 || f.Latency.Count != 2000 {
		t.Errorf("forth: %+v", f)
	}
	if back := flows[1]; back.Received != 0 || back.Latency.Count != 0 || back.Lost != 0 {
		t.Errorf("back: %+v", back)
	}
}

// TestANewProcessBeginsAnew: a reopened port restarts at zero, as does a port
// whose counters decrease.
func TestANewProcessBeginsAnew(t *testing.T) {
	before := telemetrytest.Snapshot(1, telemetrytest.Reported(9, 2000, 0))
	for name, after := range map[string]broker.LinkStatus{"fewer": telemetrytest.Reported(2, 2000, 0), "other process": telemetrytest.Reported(12, 2000, 0)} {
		want := after.Ends[1].Counters.RxPackets
		if name == "other process" {
			after.Ends[0].PID, after.Ends[1].PID = 20, 21
		}
		f := telemetry.Between(before, telemetrytest.Snapshot(2, after))[0]
		if f.Received != want || f.Sent != want || f.Latency.Count != after.Ends[1].Latency.Count {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestViolationsAreOfTheOneAtFault(t *testing.T) {
	l := telemetrytest.Reported(1, 2000, 0)
	l.Ends[1].Violations = map[string]uint64{"slot": 3, "return_slot": 5} // b saw a forge slots, and return b's slots wrongly
	flows := telemetry.Total(telemetrytest.Snapshot(1, l))
	if flows[0].Violations != 3 || flows[1].Violations != 5 {
		t.Errorf("forth %d, back %d", flows[0].Violations, flows[1].Violations)
	}
}

// TestEveryViolationHasABrokersName checks that both packages use the same names.
func TestEveryViolationHasABrokersName(t *testing.T) {
	for kind := range telemetry.AboutReturns {
		if !slices.Contains(wire.ViolationNames[:], kind) {
			t.Errorf("the broker has no violation %q", kind)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// inSlots is a run whose load was FAPI messages.
func inSlots() *fixture {
	f := newFixture()
	l := &f.plan.Links[0]
	l.FAPI = &chain.FAPI{SCS: 30, DLTTI: 2048, TXData: 115_000, Within: units.Duration(500 * time.Microsecond)}
	l.Load, l.Requires, l.Evidence = l.FAPI.Bitrate(), chain.Requires{OnTime: 0.99}, nil
	for i := range 6 {
		ends := []string{"cu-up.f1u", "du.f1u", "cu-up.f1u"}[i%2:]
		t := f.trial(l.Name, record.QStream, ends[0], ends[1], i/2)
		f.delivery(t, uint64(l.Load), 4000, 3)
		at := func(counts ...record.BucketCount) record.Histogram { return record.Histogram{Bits: 6, Counts: counts} }
		t.Windows = record.Windows{
			"tx_data": {OnTime: 1990, Late: 4, SentLate: 3, AfterOpening: at(record.BucketCount{Value: 32_767, Count: 1950}, record.BucketCount{Value: 524_287, Count: 44})},
			"dl_tti":  {Early: 1, OnTime: 1999, AfterOpening: at(record.BucketCount{Value: 16_383, Count: 1999})},
		}
	}
	return f
}

func TestWindowsGolden(t *testing.T) {
	golden(t, "windows.txt", text(t, inSlots(), 0))
	if html := page(t, inSlots()); !strings.Contains(html, "Receive windows") || !strings.Contains(html, "TX_DATA.request") {
		t.Error("the page has no receive windows")
	}
	if html := page(t, good()); strings.Contains(html, "Receive windows") {
		t.Error("a load without slots has receive windows")
	}
}

func TestWindowsAreSummedUp(t *testing.T) {
	ms := inSlots().load(t).Measurements()
	if len(ms) != 2 || len(ms[0].Windows) != 2 {
		t.Fatalf("%+v", ms)
	}
	dl, tx := ms[0].Windows[0], ms[0].Windows[1]
	if dl.Kind != "dl_tti" || dl.Early != 3 || dl.OnTime != 5997 || tx.Late != 12 || tx.SentLate != 9 || tx.Arrived[1].Value != 524_287 {
		t.Errorf("%+v", ms[0].Windows)
	}
}

func TestMalformedWindowsFailTheTrial(t *testing.T) {
	f := inSlots()
	f.trials[0].Windows = record.Windows{"dl_tti": {AfterOpening: record.Histogram{Bits: 6, Counts: []record.BucketCount{{Value: 5, Count: -1}}}}}
	m := f.load(t).Measurements()[0]
	if len(m.Failed) != 1 || len(m.Trials) != 2 || m.Windows[0].OnTime != 2*1999 {
		t.Errorf("failed %q, counted %q: %+v", m.Failed, m.Trials, m.Windows)
	}
}

// SPDX-License-Identifier: Apache-2.0

package published

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

// A record of frames carries the ceiling that its mark was made from, even through
// the file.
func TestFramesKeepTheCeilingOfTheirMark(t *testing.T) {
	for rate, bound := range map[uint64]bool{79_000: false, 81_000: true} {
		var got collector
		for _, trial := range []record.Trial{
			{Quantity: record.QCeiling, Bench: &record.Bench{Ceiling: &record.Ceiling{Send: 200_000, Receive: 100_000}}},
			{Schema: record.Schema, Run: "x", ID: "f", Quantity: record.QFrames, Marks: []string{},
				Delivery: &record.Delivery{PacketRate: rate}, Bench: &record.Bench{Load: "max", Limit: &record.Limit{Ring: 1e8}}},
		} {
			testenv.Must(t, got.Write(trial))
		}
		trial, err := got.of(experiment.Cell{Load: "max"}.Offered())
		testenv.Must(t, err)
		path := filepath.Join(t.TempDir(), "records")
		w, err := record.Create(path)
		testenv.Must(t, err)
		testenv.Must(t, w.Write(trial))
		testenv.Must(t, w.Close())
		read, _, err := record.ReadFile(path)
		if err != nil || len(read) != 1 {
			t.Fatalf("%d records, %v", len(read), err)
		}
		b := read[0].Bench
		if b == nil || b.Ceiling == nil || b.Ceiling.Receive != 100_000 || b.Limit == nil || b.Load != "max" {
			t.Errorf("the record has %+v", b)
		}
		if slices.Contains(read[0].Marks, record.MarkGeneratorBound) != bound {
			t.Errorf("%d packets/s: marks %v", rate, read[0].Marks)
		}
	}
}

func TestFramesWithoutACeiling(t *testing.T) {
	var got collector
	if _, err := got.of(experiment.Cell{Load: "max"}.Offered()); err == nil {
		t.Error("a trial exists without a measurement")
	}
	failed := record.Trial{Quantity: record.QCeiling, Error: "no draygen", Bench: &record.Bench{}}
	for _, trial := range []record.Trial{failed, {Quantity: record.QFrames, Delivery: &record.Delivery{PacketRate: 5}, Bench: &record.Bench{Load: "max"}}} {
		testenv.Must(t, got.Write(trial))
	}
	if trial, err := got.of(experiment.Cell{Load: "max"}.Offered()); err != nil || len(trial.Marks) > 0 || trial.Bench.Ceiling != nil {
		t.Errorf("%+v, %v", trial, err)
	}
}

// TestMatrixOfCell: what a cell says about its packets and machines reaches dray bench.
func TestMatrixOfCell(t *testing.T) {
	m := matrixOf(experiment.Cell{Tool: experiment.ToolFrames, Batch: 1, NoHzFull: true, Forwarding: chain.ForwardingLearning, Load: "9Mpps"}, time.Second)
	if m.Batch != 1 || !m.NoHzFull || m.Forwarding != chain.ForwardingLearning || m.Loads[0].PacketRate != 9_000_000 {
		t.Errorf("%+v", m)
	}
}

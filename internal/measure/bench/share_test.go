// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/matrix"
)

// TestWholeBeforeItsShares: in any order, PDR is found before its shares.
func TestWholeBeforeItsShares(t *testing.T) {
	m := matrixOf(t, "transports: [veth, shm]\nloads: [max, 0%pdr, 10%pdr, pdr, 90%pdr, 10kpps]\nrepetitions: 100\n")
	run := &report.BenchRun{Matrix: *m, Seed: 3, Rows: Rows(m, host2())}
	places := map[int]bool{}
	for round := range m.Repetitions {
		for _, v := range visitsOf(run, round) {
			if v.loads == nil {
				continue
			}
			if len(v.loads) != len(m.Loads) {
				t.Fatalf("%d of %d loads: %v", len(v.loads), len(m.Loads), v.loads)
			}
			whole := slices.Index(v.loads, matrix.Load{Search: matrix.LoadPDR})
			if share := slices.IndexFunc(v.loads, func(l matrix.Load) bool { return l.OfPDR }); whole > share {
				t.Fatalf("round %d: %v", round, v.loads)
			}
			places[whole] = true
		}
	}
	if len(places) < 3 {
		t.Errorf("PDR is always at %v: the order is not random", places)
	}
	// Without shares nothing is moved.
	loads := []matrix.Load{{Search: matrix.LoadMax}, {Search: matrix.LoadPDR}}
	before := slices.Clone(loads)
	if wholeFirst(loads); !slices.Equal(loads, before) {
		t.Errorf("%v became %v", before, loads)
	}
}

// TestShareOfPDR: of this configuration and round, even if an earlier process found it.
func TestShareOfPDR(t *testing.T) {
	m := matrixOf(t, "transports: [veth]\nloads: [pdr, 0%pdr, 50%pdr]\ntrial: 200ms\n")
	c := record.Config{Transport: "veth", Face: "netdev", Runtime: "process", Size: "64", VNF: "direct"}
	other := c
	other.Size = "1518"
	pdr := matrix.Load{Search: matrix.LoadPDR}
	found := func(c record.Config, round int, rate float64, failed string) record.Trial {
		return record.Trial{ID: visit{c, round, nil}.id(pdr), Error: failed, Bench: &record.Bench{Search: &record.Search{Throughput: rate}}}
	}
	step := found(c, 1, 7, "")
	step.ID += "-s1"
	half, idle := matrix.Load{OfPDR: true, Percent: 50}, matrix.Load{OfPDR: true}
	at := func(round int, earlier ...record.Trial) *setup {
		r := &Runner{Machine: &runner.Machine{Inventory: host2()}, Run: &report.BenchRun{Matrix: *m}, Earlier: earlier}
		return r.setup(visit{c, round, m.Loads})
	}
	earlier := []record.Trial{found(other, 1, 10_000, ""), found(c, 0, 20_000, ""), found(c, 1, 30_000, ""), step, found(c, 2, 1, "no rate")}
	for round, want := range []uint64{10_000, 15_000, 0, 0} {
		got, err := at(round, earlier...).shareOf(half)
		if got != want || (err == nil) != (want > 0) || err != nil && !strings.Contains(err.Error(), "this round has no PDR") {
			t.Errorf("round %d: %d packets/s, %v; want %d", round, got, err, want)
		}
	}
	s := at(0)
	if _, err := s.underLoad(context.Background(), half); err == nil {
		t.Error("a share of nothing was offered")
	}
	s.note(found(c, 0, 400_000, ""))
	if got, err := s.shareOf(idle); err != nil || got != 1000 {
		t.Errorf("an idle link is probed with %d packets/s, %v", got, err)
	}
	// 200,000 packets/s keep both ends of a socket busy, 1000 do not.
	if d := s.demand(half); d[sender] != 1 || d[receiver] != 1 {
		t.Errorf("half of PDR wants %v", d)
	}
	if d := s.demand(idle); d[sender] != 0 {
		t.Errorf("an idle link wants %v", d)
	}
}

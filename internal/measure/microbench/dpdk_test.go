// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// line is a generator line about an interval of 50 ms.
func line(fields string) string {
	return `{"draygen":1,"event":"interval","from_ns":1000000000,"to_ns":1050000000,` + fields + "}\n"
}

var (
	idleLoop = line(`"forward":{"sent":288,"received":0},"backward":{"sent":256,"received":0}`)
	busyLoop = line(`"forward":{"sent":288,"received":300},"backward":{"sent":256,"received":200}`)
)

func TestIntervals(t *testing.T) {
	for name, c := range map[string]struct {
		log       string
		intervals int
		packets   float64
	}{
		"both directions":    {busyLoop, 1, 500},
		"nothing comes back": {idleLoop, 1, 0},
		"sender":             {line(`"sent":7`), 1, 7},
		"sink":               {line(`"received":8`), 1, 8},
		"idle sink":          {line(`"received":0,"sent":9`), 1, 0},
		"other lines":        {`{"draygen":1,"event":"ready"}` + "\nEAL: talks\n" + busyLoop, 1, 500},
		"incomplete":         {busyLoop + strings.TrimSuffix(busyLoop, "\n"), 1, 500},
	} {
		all := intervals(c.log)
		if len(all) != c.intervals || packetsOf(all) != c.packets {
			t.Errorf("%s: %d intervals, %g packets; want %d, %g", name, len(all), packetsOf(all), c.intervals, c.packets)
		}
	}
}

// printing is a script that prints a generator line so many times.
func printing(line string, times string) string {
	return `i=0; while [ $i -lt ` + times + ` ]; do printf '%s' '` + line + `'; sleep 0.01; i=$((i+1)); done; `
}

// While a switch does not forward yet, its generator prints intervals without
// packets: the pair is not ready, and must not be paused.
func TestPairWaitsForPackets(t *testing.T) {
	p := &place{ctx: context.Background()}
	pair := &pair{sender: script(t, printing(idleLoop, "20")+printing(busyLoop, "500"))}
	p.awaitPackets(pair, pair.sender)
	if pair.why != "" {
		t.Fatal(pair.why)
	}
	if log := pair.sender.logFrom(0); !strings.Contains(log, busyLoop) {
		t.Errorf("ready before a packet came back, after %d intervals", len(intervals(log)))
	}

	pair.sender = script(t, printing(idleLoop, "5"))
	if p.awaitPackets(pair, pair.sender); pair.why == "" {
		t.Error("ready without a packet")
	}
}

// A moment without packets does not fail a working pair.
func TestRateGoesOnUntilPacketsArrive(t *testing.T) {
	p := &place{ctx: context.Background(), DPDK: DPDK{Window: 4 * interval}}
	g := script(t, printing(idleLoop, "10")+printing(busyLoop, "1")+"sleep 60")
	if rate, want := p.rateSince(g, 0), 500/(50e-3*float64(10-skipped+1)); math.Abs(rate-want) > 1e-6*want {
		t.Errorf("%g packets/s, want %g", rate, want)
	}
	if rate := p.rateOf(script(t, printing(idleLoop, "10"))); rate != 0 {
		t.Errorf("%g packets/s of a generator that ended", rate)
	}
}

func TestPairWithoutPrograms(t *testing.T) {
	r := &dpdkRows{place: &place{ctx: context.Background(), end: time.Now().Add(time.Hour)}}
	start := func() *pair { t.Error("started without its program"); return &pair{} }
	missing := r.pairOr(start, "no-such-program")
	f := (&Figures{}).Figure("group", "row", "packets/s")
	take(f, missing, r.generatorRate(missing))
	if f.Measured() || f.missing != "there is no no-such-program" {
		t.Errorf("missing: %q", f.missing)
	}
	r.end = time.Now().Add(-time.Second)
	if late := r.pairOr(start); late.why != "no time was left to start it" {
		t.Errorf("late: %q", late.why)
	}
}

func TestDevice(t *testing.T) {
	for devices, want := range map[string]string{drayBoth: "net_dray0", virtioBoth: "net_virtio_user0", nullWay.sender: "net_null0"} {
		if got := device(devices); got != want {
			t.Errorf("%q: %q, want %q", devices, got, want)
		}
	}
}

func TestLargestShares(t *testing.T) {
	got := largestShares(`
    40.10%  [.] rx_burst     librte_net_dray.so
    30.00%  [.] 0x00001234   testpmd
    20.00%  [.] 0x00005678   testpmd
     5.00%  [k] clear_page   [kernel.kallsyms]
     1.00%  [.] a            b
     0.50%  [.] c            d
`)
	want := []string{"50 % testpmd", "40 % rx_burst of librte_net_dray.so", "5 % clear_page of [kernel.kallsyms]", "1 % a of b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A missing program is a row without a figure, and the log says so.
func TestMissingCostProgram(t *testing.T) {
	var log strings.Builder
	figures := &Figures{}
	r := &dpdkRows{figures: figures, place: &place{ctx: context.Background(), DPDK: DPDK{Cost: "/nonexistent/dray-pmd-cost", Log: &log}}}
	r.costs()
	f := figures.Figure(groupCost, "all frames", "ns")
	if f.Measured() || !strings.Contains(f.whyMissing(), "dray-pmd-cost") || !strings.Contains(log.String(), "no such file") {
		t.Errorf("missing %q, logged %q", f.whyMissing(), log.String())
	}
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/test/testenv"
)

// benchFixture is the directory of a bench in the making.
type benchFixture struct {
	run    BenchRun
	trials []record.Trial
	base   *fixture // of random times
}

var benchStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newBench has a fast row, a slow baseline, a generator-bound row, a row that always
// failed, and a row that the host cannot run.
func newBench(t *testing.T) *benchFixture {
	t.Helper()
	m, err := matrix.Parse("", []byte("apiVersion: drayage/v1\nkind: Bench\nname: example\nruntimes: [process]\nloads: [max, 10kpps, 100kpps]\nrepetitions: 3\n"))
	testenv.Must(t, err)
	f := &benchFixture{base: newFixture(), run: BenchRun{
		Schema: BenchSchema, ID: "bench-example-1", Matrix: *m, Hash: "x", Started: benchStart, Finished: benchStart.Add(90 * time.Second),
		Took: 90 * time.Second, Rounds: 3, Seed: 7, Program: Program{Dray: "v1"}, Baseline: "veth", Host: inventory.Host{Hostname: "host"},
	}}
	config := func(transport, face string) record.Config {
		return record.Config{Transport: transport, Face: face, Runtime: "process", Size: "64", VNF: "direct"}
	}
	f.row(BenchRow{Config: config("veth", "netdev"), Privileges: "none", Isolation: "no-shared-memory"}, 200e3, 20*time.Microsecond)
	f.row(BenchRow{Config: config("shm", "native"), Privileges: "none", Isolation: "link"}, 10e6, 400*time.Nanosecond)
	f.row(BenchRow{Config: config("memif", "dpdk"), Privileges: "none"}, 22e6, time.Microsecond)
	f.failed(BenchRow{Config: config("ovs", "netdev"), Privileges: "none"}, "ovs-vswitchd ended")
	f.run.Rows = append(f.run.Rows, BenchRow{Config: record.Config{Transport: "vpp", Face: "–", Runtime: "–", Size: "–", VNF: "–"},
		Skipped: "no vpp binary", Fix: "install VPP"})
	for round := range 3 {
		f.trials = append(f.trials, record.Trial{Run: f.run.ID, ID: fmt.Sprintf("ceiling-r%d", round), Round: round, Quantity: record.QCeiling, Marks: []string{},
			Bench: &record.Bench{Config: record.Config{Face: "netdev", Size: "64"}, Load: "max", Ceiling: &record.Ceiling{Instrument: "draygen", Send: 40e6, Receive: 25e6}}})
	}
	return f
}

// row adds a configuration whose rate and delay vary a little from round to round.
func (f *benchFixture) row(row BenchRow, rate float64, median time.Duration) {
	f.run.Rows = append(f.run.Rows, row)
	for round := range 3 {
		vary := 1 + 0.02*float64(round-1)
		for _, load := range f.run.Matrix.Loads {
			got := rate * vary
			if load.Stated() {
				got = float64(load.PacketRate)
			}
			t := f.trial(row.Config, load.String(), round)
			t.Delivery = &record.Delivery{Sent: uint64(got / 2), Received: uint64(got/2) - 10, Lost: 10, PacketRate: uint64(got)}
			h, least := f.base.times(time.Duration(float64(median)*vary), 0.01, 4000)
			_, most, _ := highest(h)
			t.OneWay = &record.OneWay{Latency: h, Intended: h, Lateness: h, IPDV: h, Min: least, Max: most}
			t.Bench.Span = &record.Span{Start: 1, End: 2, Sender: 1, Sink: 1}
			t.Bench.Cost = &record.Cost{Cores: 1.5, Machine: 0.9, Idle: 0.01, Memory: 3 << 20}
		}
	}
}

func highest(h record.Histogram) (low, high time.Duration, ok bool) {
	if len(h.Counts) == 0 {
		return 0, 0, false
	}
	return time.Duration(h.Counts[0].Value), time.Duration(h.Counts[len(h.Counts)-1].Value), true
}

func (f *benchFixture) failed(row BenchRow, why string) {
	f.run.Rows = append(f.run.Rows, row)
	for round := range 3 {
		for _, load := range f.run.Matrix.Loads {
			f.trial(row.Config, load.String(), round).Error = why
		}
	}
}

func (f *benchFixture) trial(c record.Config, load string, round int) *record.Trial {
	f.trials = append(f.trials, record.Trial{
		Run: f.run.ID, ID: fmt.Sprintf("%s/%s-r%d", c, load, round), Round: round, Quantity: record.QFrames, Transport: c.Transport,
		From: "a.p0", To: "b.p1", Start: benchStart, Duration: time.Second, Marks: []string{record.MarkBusy}[:round%2],
		Instrument: record.Instrument{Name: "draygen", Version: "1", Client: []string{"draygen", "send"}, Server: []string{}},
		Bench:      &record.Bench{Config: c, Load: load, Limit: &record.Limit{Ring: 100e6 * (1 + 0.01*float64(round)), Line: 110, TSC: 2.5e9}},
	})
	return &f.trials[len(f.trials)-1]
}

func (f *benchFixture) load(t *testing.T) *BenchData {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(f.run)
	testenv.Must(t, err)
	write(t, dir, BenchFile, text)
	write(t, dir, MatrixFile, []byte("kind: Bench\n"))
	var lines bytes.Buffer
	for _, trial := range f.trials {
		trial.Schema = record.Schema
		line, err := json.Marshal(trial)
		testenv.Must(t, err)
		lines.Write(append(line, '\n'))
	}
	write(t, dir, RecordsFile, lines.Bytes())
	d, err := LoadBench(dir)
	testenv.Must(t, err)
	d.Dir = "runs/bench"
	return d
}

func (f *benchFixture) page(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	testenv.Must(t, f.load(t).Document().HTML(&b))
	return b.String()
}

func TestBenchTextGolden(t *testing.T) {
	for name, width := range map[string]int{"bench.txt": 0, "bench-narrow.txt": 100} {
		var b bytes.Buffer
		testenv.Must(t, newBench(t).load(t).Document().Text(&b, width))
		golden(t, name, b.Bytes())
	}
}

func TestBenchJSONGolden(t *testing.T) {
	var b bytes.Buffer
	d := newBench(t).load(t)
	d.Run.Matrix, d.Run.Rows = matrix.Matrix{}, nil // the source of the lines
	testenv.Must(t, d.Document().JSON(&b))
	golden(t, "bench.json", b.Bytes())
}

func benchLine(t *testing.T, d *BenchData, transport, load string) BenchLine {
	t.Helper()
	for _, l := range d.Lines {
		if l.Config.Transport == transport && l.Load == load {
			return l
		}
	}
	t.Fatalf("no line of %s at %q", transport, load)
	return BenchLine{}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s is %v, want about %v", what, got, want)
	}
}

func TestBenchLines(t *testing.T) {
	d := newBench(t).load(t)
	// The first stated rate is on the line of max; the second has its own line.
	if len(d.Lines) != 4*2+1 {
		t.Fatalf("%d lines", len(d.Lines))
	}
	shm := benchLine(t, d, "shm", "max")
	near(t, "rate", shm.Rate.Mean, 10e6, 1e-6)
	// On logarithms: the geometric mean × exp(t(0.975, 2)·s/√3), s = 0.020003.
	near(t, "upper end of the interval", *shm.Rate.High, 10e6*math.Cbrt(0.98*1.02)*math.Exp(4.302653*0.020003/math.Sqrt(3)), 1e-5)
	near(t, "bits", shm.Bits.Mean, 10e6*64*8, 1e-6)
	near(t, "cycles per packet", shm.Cost.Cycles.Mean, 2.5e9*1.5/10e6, 1e-3)
	near(t, "of the limit", shm.Limit.Ratio, 0.1, 0.02)
	// Both vary alike, so the pairs agree better than the means.
	near(t, "of the baseline", shm.Base.Ratio, 50, 1e-3)
	if shm.Base.Indistinct || *shm.Base.High > 51 {
		t.Errorf("ratio to the baseline %+v", shm.Base)
	}
	if shm.LatencyLoad != "10kpps" || shm.Samples != 12_000 || shm.Latency[3].Refused != "" || shm.Latency[4].Refused == "" {
		t.Errorf("latency at %s, %d samples: %+v", shm.LatencyLoad, shm.Samples, shm.Latency)
	}
	near(t, "median by the way of a cache line", shm.LatencyLimit.Ratio, 400.0/55, 0.05)
	near(t, "latency of the baseline", shm.LatencyBase.Ratio, 0.02, 0.05)
	veth := benchLine(t, d, "veth", "max")
	if veth.Base != nil || veth.LatencyBase != nil {
		t.Error("the baseline is compared with itself")
	}
	stated := benchLine(t, d, "veth", "100kpps")
	if stated.Limit != nil || stated.LatencyLoad != "100kpps" {
		t.Errorf("a stated rate by the limit: %+v, latency at %s", stated.Limit, stated.LatencyLoad)
	}
}

func TestGeneratorBoundRatesAreMarked(t *testing.T) {
	d := newBench(t).load(t)
	for transport, want := range map[string]bool{"memif": true, "shm": false} {
		if got := strings.Contains(strings.Join(benchLine(t, d, transport, "max").Marks, " "), record.MarkGeneratorBound); got != want {
			t.Errorf("%s: generator-bound %v", transport, got)
		}
	}
}

// One thread at both ends sends and receives in turns: 40 M/s and 25 M/s are 15.4 M/s.
func TestOneThreadHasALowerCeiling(t *testing.T) {
	for rate, want := range map[float64]bool{12e6: false, 13e6: true} {
		f := newBench(t)
		config := record.Config{Transport: "vhost-user", Face: "dpdk", Runtime: "process", Size: "64", VNF: "direct"}
		f.row(BenchRow{Config: config, Privileges: "none"}, rate, time.Microsecond)
		for i := range f.trials {
			if f.trials[i].Bench.Config == config {
				f.trials[i].Mark(record.MarkFewCPUs)
			}
		}
		l := benchLine(t, f.load(t), "vhost-user", "max")
		if got := slices.Contains(l.Marks, record.MarkGeneratorBound); got != want {
			t.Errorf("%g packets/s of %g: generator-bound %v", rate, l.Ceiling, got)
		}
	}
}

func TestSearchedRatesCountAsFound(t *testing.T) {
	f := newBench(t)
	f.run.Matrix.Loads = []matrix.Load{{Search: matrix.LoadNDR}}
	for i := range f.trials {
		if b := f.trials[i].Bench; b.Load == "max" && b.Ceiling == nil {
			b.Load = "ndr"
			step := f.trials[i]
			own := *b
			own.Step = 1
			step.ID, step.Bench = step.ID+"-s1", &own
			b.Search = &record.Search{Goal: "NDR: loss ≤ 0 %", Throughput: 5e6}
			f.trials = append(f.trials, step)
		}
	}
	l := benchLine(t, f.load(t), "shm", "ndr")
	near(t, "rate", l.Rate.Mean, 5e6, 1e-9)
	if l.Search == "" || len(l.Trials) != 3 {
		t.Errorf("goal %q, records %v", l.Search, l.Trials)
	}
}

// A share of PDR is a load for latency with its own row. It never compares a transport
// with the limit, and never supplies another row's latency.
func TestSharesOfPDRAreRows(t *testing.T) {
	f := newBench(t)
	f.run.Matrix.Loads = []matrix.Load{{OfPDR: true, Percent: 10}, {Search: matrix.LoadMax}, {PacketRate: 10_000}}
	for i := range f.trials {
		if b := f.trials[i].Bench; b.Load == "100kpps" {
			b.Load, b.PDR = "10%pdr", 1e6
		}
	}
	d := f.load(t)
	if most := benchLine(t, d, "shm", "max"); most.LatencyLoad != "10kpps" || most.Limit == nil {
		t.Errorf("latency at %s, of the limit %+v", most.LatencyLoad, most.Limit)
	}
	share := benchLine(t, d, "shm", "10%pdr")
	if share.LatencyLoad != "10%pdr" || share.Samples == 0 || share.Rate == nil || share.Limit != nil || share.Base != nil || share.LatencyBase == nil {
		t.Errorf("%+v", share)
	}
	var page strings.Builder
	testenv.Must(t, d.Document().HTML(&page))
	if p := page.String(); !strings.Contains(p, "One-way latency at 64 B, load 10%pdr") || strings.Contains(p, "Packet rate at 64 B, load 10%pdr") {
		t.Error("the page has no plot of latency at the share, or one of its rate")
	}
}

func TestBenchSaysWhatWasNotMeasured(t *testing.T) {
	f := newBench(t)
	f.run.Finished, f.run.Rounds = time.Time{}, 1
	d := f.load(t)
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "interrupted") {
		t.Errorf("warnings %v", d.Warnings)
	}
	if l := benchLine(t, d, "ovs", "max"); l.state() != "failed: ovs-vswitchd ended" {
		t.Errorf("state %q", l.state())
	}
	if l := benchLine(t, d, "vpp", ""); l.state() != "not run here: no vpp binary; install VPP" {
		t.Errorf("state %q", l.state())
	}
}

func TestBenchPage(t *testing.T) {
	html := newBench(t).page(t)
	if m := elsewhere.FindString(html); m != "" || strings.Contains(html, "://") {
		t.Errorf("the page reaches out, or runs something: %q", m)
	}
	known := map[string]bool{}
	for _, m := range ids.FindAllStringSubmatch(html, -1) {
		if known[m[1]] {
			t.Errorf("id %q occurs twice", m[1])
		}
		known[m[1]] = true
	}
	for _, m := range hrefs.FindAllStringSubmatch(html, -1) {
		if !known[strings.TrimPrefix(m[1], "#")] && !exported.MatchString(m[1]) {
			t.Errorf("%q has no target", m[1])
		}
	}
	for _, want := range []string{"10.0 Mpps", "Not run here: no vpp binary", "Failed: ovs-vswitchd ended", "generator-bound", "× 50.0"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q on the page", want)
		}
	}
}

func TestBenchPageEscapes(t *testing.T) {
	f := newBench(t)
	f.run.Rows[len(f.run.Rows)-1].Skipped = `<script>alert(1)</script>`
	f.run.Rows[0].Privileges = `"><img src=x>`
	if html := f.page(t); strings.Contains(html, "<script") || strings.Contains(html, "<img") {
		t.Error("text of a row is markup on the page")
	}
}

// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		testenv.Must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	testenv.Must(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got; run the test with -update if that is intended):\n%s", path, diff)
	}
}

// monday and tuesday are two runs of one link. The second uses another transport and
// kernel, has a lossy load and an extra figure, and equal throughput.
func monday() *fixture {
	f := newFixture("monday", "veth", 1)
	f.stream(5, 50*time.Microsecond, 0)
	f.throughput(5, 15e9)
	f.add(func(t *record.Trial) {
		t.Quantity, t.Requests = record.QRequests, &record.Requests{PerSecond: 20_000}
	})
	f.add(func(t *record.Trial) {
		t.Quantity, t.Error = record.QPacketRate, "the sink died"
	})
	f.add(func(t *record.Trial) { // a warm-up and a cross-check do not count
		t.Quantity, t.Warmup, t.Throughput = record.QThroughput, true, &record.Throughput{BitsPerSecond: 1}
	})
	f.add(func(t *record.Trial) {
		t.Quantity, t.CrossCheck, t.Throughput = record.QThroughput, true, &record.Throughput{BitsPerSecond: 1}
	})
	return f
}

func tuesday() *fixture {
	f := newFixture("tuesday", "shm", 2)
	f.kernel = "6.12"
	f.stream(5, 400*time.Nanosecond, 0.004)
	f.throughput(5, 15e9)
	f.add(func(t *record.Trial) {
		t.Quantity, t.PathMTU = record.QPathMTU, &record.PathMTU{Wanted: 1500, Passed: true, Largest: 1500}
	})
	f.trials[0].Marks = []string{record.MarkBusy}
	return f
}

func comparison(t *testing.T, a, b *Run, same ...*Run) *Comparison {
	t.Helper()
	c, err := Compare(a, b, same...)
	testenv.Must(t, err)
	return c
}

func text(t *testing.T, c *Comparison, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	testenv.Must(t, c.Text(&b, width))
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	c := comparison(t, monday().load(t), tuesday().load(t))
	golden(t, "chains.txt", text(t, c, 0))
	golden(t, "narrow.txt", text(t, c, 100))
	var b bytes.Buffer
	testenv.Must(t, c.JSON(&b))
	golden(t, "chains.json", b.Bytes())
	b.Reset()
	testenv.Must(t, WriteBenchmarks(&b, c.A, c.B))
	golden(t, "chains.bench", b.Bytes())
}

// Frames of different lengths are not compared, and a side without a result is.
func TestOnlyEqualFramesArePaired(t *testing.T) {
	framed := func(id string, seed uint64, frame int) *fixture {
		f := newFixture(id, "veth", seed)
		f.stream(5, 30*time.Microsecond, 0.001)
		for i := range f.trials {
			f.trials[i].Delivery.FrameBytes = frame
		}
		return f
	}
	for _, r := range comparison(t, framed("a", 1, 1518).run(t), framed("b", 2, 256).run(t)).Rows {
		if want := "in frames of 1518 bytes in A, of 256 in B"; r.Outcome != NotCompared || r.Reason != want {
			t.Errorf("%s: %s, %q, want %q", r.Metric, r.Outcome, r.Reason, want)
		}
	}
	for _, r := range comparison(t, framed("a", 1, 1518).run(t), framed("b", 2, 1518).run(t)).Rows {
		if r.Outcome == NotCompared {
			t.Errorf("%s: equal frames are not compared: %s", r.Metric, r.Reason)
		}
	}
	failed := framed("b", 2, 1518)
	for i := range failed.trials {
		failed.trials[i].Error = "failed"
		failed.trials[i].Delivery = &record.Delivery{OfferedBits: 400_000_000}
	}
	for _, r := range comparison(t, framed("a", 1, 1518).run(t), failed.run(t)).Rows {
		if r.Reason != "every trial of B failed" {
			t.Errorf("%s: %s, %q", r.Metric, r.Outcome, r.Reason)
		}
	}
}

func TestTextFits80Columns(t *testing.T) {
	for _, line := range strings.Split(string(text(t, comparison(t, monday().load(t), tuesday().load(t)), 80)), "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("a line of %d: %q", n, line)
		}
	}
}

func benches(t *testing.T) (a, b *Run) {
	one, two := newFixture("host-a", "", 3), newFixture("host-b", "", 4)
	for _, f := range []*fixture{one, two} {
		ring := map[string]float64{"host-a": 100e6, "host-b": 50e6}[f.id]
		f.frames(5, "shm", "max", ring/5, ring)
		f.frames(5, "veth", "max", 300_000, ring)
		f.frames(5, "veth", "10kpps", 10_000, ring)
		f.frames(3, "veth", "pdr", 290_000, ring)
		for i := range 3 {
			search := &record.Search{Goal: "PDR", Lower: 290_000, Throughput: 290_000 + float64(i)}
			if f.id == "host-b" {
				search.Irregular = "the sender cannot offer more"
			}
			f.trials[15+i].Bench.Search = search
		}
		for range 3 {
			f.add(func(t *record.Trial) {
				t.Quantity, t.Link, t.From, t.To, t.Transport = record.QCeiling, "", "", "", ""
				t.Bench = &record.Bench{Config: record.Config{Face: "native", Size: "64"}, Load: "max",
					Ceiling: &record.Ceiling{Send: ring / 4 * f.noise(0.01), Receive: ring / 3 * f.noise(0.01)}}
			})
		}
		f.add(func(t *record.Trial) { // a step of a search does not count
			t.Quantity, t.Delivery, t.Bench = record.QFrames, &record.Delivery{Sent: 1, Received: 1, PacketRate: 1}, &record.Bench{Load: "ndr", Step: 1}
		})
	}
	return one.load(t), two.load(t)
}

// One of two hosts is half as fast: the rate halves, and its share of the host's limit
// stays.
func TestBenchGolden(t *testing.T) {
	c := comparison(t, first(benches(t)), last(benches(t)))
	golden(t, "benches.txt", text(t, c, 0))
	for _, r := range c.Rows {
		want, asked := map[string]Outcome{"packet rate": Worse, "packet rate / bare ring": Indistinguishable}[r.Metric]
		if asked && r.Cell.Config == "shm/native/process/64/none" && r.Outcome != want {
			t.Errorf("%s: %s, want %s", r.Metric, r.Outcome, want)
		}
	}
	var b bytes.Buffer
	testenv.Must(t, WriteBenchmarks(&b, c.A))
	golden(t, "bench.bench", b.Bytes())
}

func first(a, _ *Run) *Run { return a }
func last(_, b *Run) *Run  { return b }

func rowOf(t *testing.T, c *Comparison, metric string) Row {
	t.Helper()
	for _, r := range c.Rows {
		if r.Metric == metric {
			return r
		}
	}
	t.Fatalf("no row %q", metric)
	return Row{}
}

func TestOutcomes(t *testing.T) {
	c := comparison(t, monday().run(t), tuesday().run(t))
	for metric, want := range map[string]struct {
		outcome Outcome
		reason  string
	}{
		"one way, p99":    {Better, ""},
		"one way, p99.9":  {NotCompared, "the trials of B do not support it"}, // it is among the lost
		"lost":            {Worse, ""},
		"throughput":      {Indistinguishable, ""},
		"requests":        {NotCompared, "only in A"},
		"largest packet":  {NotCompared, "only in B"},
		"packet rate":     {NotCompared, "no trial has a result: 1 failed in A, 0 in B"},
		"one way, p99.99": {NotCompared, ""},
	} {
		if metric == "one way, p99.99" { // too few: 20,000 packets a trial
			for _, r := range c.Rows {
				if r.Metric == metric {
					t.Errorf("%s was compared", metric)
				}
			}
			continue
		}
		r := rowOf(t, c, metric)
		if r.Outcome != want.outcome || r.Reason != want.reason {
			t.Errorf("%s is %s (%s), want %s (%s)", metric, r.Outcome, r.Reason, want.outcome, want.reason)
		}
	}
	if diff := cmp.Diff([]string{"kernel: 6.1 → 6.12"}, c.Besides); diff != "" {
		t.Error(diff)
	}
	p50 := rowOf(t, c, "one way, p50").Ratio
	if truth := 0.008; p50.Low > truth || p50.High < truth {
		t.Errorf("the ratio of p50 is in %g … %g, want %g within", p50.Low, p50.High, truth)
	}
}

func TestEmulatedIsNotComparedWithNative(t *testing.T) {
	a, b := newFixture("a", "veth", 1), newFixture("b", "veth", 2)
	a.throughput(3, 1e9)
	b.throughput(3, 2e9)
	b.trials[1].Marks = []string{record.MarkEmulated}
	r := rowOf(t, comparison(t, a.run(t), b.run(t)), "throughput")
	if r.Outcome != NotCompared || !strings.Contains(r.Reason, "emulated") {
		t.Errorf("%s (%s), want not compared", r.Outcome, r.Reason)
	}
	a.trials[0].Marks = []string{record.MarkEmulated}
	if r := rowOf(t, comparison(t, a.run(t), b.run(t)), "throughput"); r.Outcome != Better {
		t.Errorf("both emulated: %s (%s), want better", r.Outcome, r.Reason)
	}
}

// Runs of one kind that differ by 10 % hide a difference of 5 %, even if each run
// repeats its own figure to 0.1 %.
func TestNoiseBetweenRuns(t *testing.T) {
	run := func(id string, bits float64) *Run {
		f := newFixture(id, "veth", uint64(bits))
		for range 5 {
			f.add(func(t *record.Trial) {
				t.Quantity, t.Throughput = record.QThroughput, &record.Throughput{BitsPerSecond: uint64(bits * f.noise(0.001))}
			})
		}
		return f.run(t)
	}
	a, b := run("a", 10e9), run("b", 10.5e9)
	same := []*Run{run("a2", 11e9), run("a3", 9.5e9), run("a4", 10.3e9)}
	if r := rowOf(t, comparison(t, a, b), "throughput"); r.Outcome != Better || r.Noise != nil {
		t.Errorf("without further runs: %s, noise %v; want better", r.Outcome, r.Noise)
	}
	r := rowOf(t, comparison(t, a, b, same...), "throughput")
	if r.Outcome != Indistinguishable || r.Reason == "" || r.Noise == nil || *r.Noise < 1.1 {
		t.Errorf("with further runs: %s (%s), noise %v; want indistinguishable", r.Outcome, r.Reason, r.Noise)
	}
	if r := rowOf(t, comparison(t, a, run("far", 30e9), same...), "throughput"); r.Outcome != Better {
		t.Errorf("three times as much: %s (%s), want better", r.Outcome, r.Reason)
	}
}

// A failed trial does not state its load; it counts as failed if the load's series is
// known.
func TestFailedTrialsBelongToTheirSeries(t *testing.T) {
	a, b := newFixture("a", "veth", 1), newFixture("b", "veth", 2)
	for _, f := range []*fixture{a, b} {
		f.stream(3, 50*time.Microsecond, 0)
		f.add(func(t *record.Trial) { t.Quantity, t.Error = record.QStream, "the sink died" })
		for i := range f.trials {
			f.trials[i].ID = fmt.Sprintf("f1u-stream-r%d", i)
		}
	}
	c := comparison(t, a.run(t), b.run(t))
	for _, r := range c.Rows {
		if r.Outcome == NotCompared || r.A.N != 3 || r.A.Failed != 1 || r.Cell.Load != "400000000" {
			t.Errorf("%s at %s: %s (%s), %d trials and %d failed; want 3 and 1", r.Metric, r.Cell.Load, r.Outcome, r.Reason, r.A.N, r.A.Failed)
		}
	}
}

// Figures from different instruments are not compared, and a link in only one run is
// one line. All rows of a link stay in one table.
func TestWhatOneRunLacks(t *testing.T) {
	a, b := newFixture("a", "veth", 1), newFixture("b", "shm", 2)
	for _, f := range []*fixture{a, b} {
		f.throughput(3, 10e9)
		f.stream(3, 50*time.Microsecond, 0)
		for i := 3; i < 6; i++ {
			f.trials[i].Link = "second"
		}
	}
	for i := range 3 {
		b.trials[i].Instrument.Name = "draygen"
	}
	b.throughput(2, 1e9)
	b.trials[6].Link, b.trials[7].Link = "third", "third"
	c := comparison(t, a.run(t), b.run(t))
	for _, r := range c.Rows {
		if r.Metric == "throughput" && r.Cell.Link == "f1u" && r.Reason != "by iperf3 in A, by draygen in B" {
			t.Errorf("throughput by %s: %s (%s)", r.Cell.Instrument, r.Outcome, r.Reason)
		}
	}
	out := string(text(t, c, 0))
	for _, want := range []string{"Link f1u over veth in A, over shm in B\n", "\nLink third over shm, only in B: 1 figure\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	if strings.Count(out, "Link f1u ") != 1 || strings.Count(out, "Link second ") != 1 {
		t.Errorf("a link has several tables:\n%s", out)
	}
}

// A/A: two runs of one kind differ in about 5 % of the figures, as the summary says.
func TestFalseDifferences(t *testing.T) {
	const runs = 600
	for _, trials := range []int{5, 10} {
		wrong, compared, chance := 0.0, 0.0, 0.0
		for seed := range uint64(runs) {
			one, two := newFixture("a", "veth", 2*seed), newFixture("b", "veth", 2*seed+1)
			for _, f := range []*fixture{one, two} {
				f.throughput(trials, 10e9)
				f.frames(trials, "veth", "max", 300_000, 100e6)
			}
			c := comparison(t, one.run(t), two.run(t))
			for _, r := range c.Rows {
				if r.Metric == "lost" || r.Metric == "memory" || r.Metric == "jitter (RFC 3550)" {
					continue // equal in every trial
				}
				compared++
				if r.Outcome != Indistinguishable {
					wrong++
				}
			}
			chance = c.ByChance / float64(len(c.Rows))
		}
		if share := wrong / compared; share < 0.03 || share > 0.07 || math.Abs(chance-0.05) > 1e-9 {
			t.Errorf("%d trials: %.1f %% of the figures differ by chance, and the summary says %.1f %%", trials, 100*share, 100*chance)
		}
	}
}

func TestRefuses(t *testing.T) {
	a := monday().run(t)
	if _, err := Compare(a, a); err == nil || !strings.Contains(err.Error(), "the same run") {
		t.Errorf("a run against itself: %v", err)
	}
	dir := t.TempDir()
	if _, err := Load(dir); err == nil {
		t.Error("an empty directory was loaded")
	}
	for name, content := range map[string]string{
		"empty":     "",
		"malformed": "{\n",
		"two runs":  `{"schema":2,"run":"a","id":"1"}` + "\n" + `{"schema":2,"run":"b","id":"2"}` + "\n",
	} {
		path := filepath.Join(dir, "records.jsonl")
		testenv.Must(t, os.WriteFile(path, []byte(content), 0o644))
		if _, err := Load(dir); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Text in a record cannot break out of a line of the export, or move a terminal's
// cursor.
func TestHostileNames(t *testing.T) {
	for _, quantity := range []record.Quantity{"", "_", "throughput"} {
		f := newFixture("evil\nUnit x better=lower", "ve\x1b[2Jth", 1)
		f.throughput(2, 1e9)
		for i := range f.trials {
			f.trials[i].Quantity, f.trials[i].Link = quantity, "a b\nBenchmarkX 1 1 ns/op"
		}
		g := newFixture("b", "veth", 2)
		g.throughput(2, 1e9)
		c := comparison(t, f.run(t), g.run(t))
		var b bytes.Buffer
		testenv.Must(t, WriteBenchmarks(&b, c.A, c.B))
		for _, line := range strings.Split(b.String(), "\n") {
			if strings.HasPrefix(line, "BenchmarkX") || strings.HasPrefix(line, "Unit x") {
				t.Errorf("%q: a record made the line %q", quantity, line)
			}
		}
		if out := text(t, c, 0); bytes.ContainsRune(out, 0x1b) {
			t.Error("a record wrote an escape sequence")
		}
	}
}

func TestJSONIsWhole(t *testing.T) {
	c := comparison(t, monday().run(t), tuesday().run(t))
	var b bytes.Buffer
	testenv.Must(t, c.JSON(&b))
	var back Comparison
	testenv.Must(t, json.Unmarshal(b.Bytes(), &back))
	if diff := cmp.Diff(c.Rows, back.Rows, cmpopts.IgnoreUnexported(Row{}, Side{})); diff != "" {
		t.Error(diff)
	}
}

// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden file")

// inRounds is a figure with the same sample in every round.
func inRounds(s *Figures, name string, rounds int, sample float64) *Figure {
	f := s.Figure("group", name, "ns")
	for range rounds {
		f.Add(sample)
	}
	return f
}

// A figure that fails later keeps its value, and counts as not measured.
func TestMissing(t *testing.T) {
	var s Figures
	f := s.Figure("group", "fails", "ns")
	if f.Measured() {
		t.Error("measured without a sample")
	}
	f.Add(5)
	if !f.Measured() {
		t.Error("not measured with a sample")
	}
	f.Missing("it has ended")
	if f.Measured() || f.Value() != 5 {
		t.Errorf("measured %v, value %g after it failed", f.Measured(), f.Value())
	}
	if e := s.entry(f); e.Value != nil || e.Missing != "it has ended" {
		t.Errorf("written as %+v", e)
	}
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		rounds int
		sample float64
		want   string
	}{
		{1, 2, "reached, in too few rounds to be sure"},
		{5, 2, "reached, in too few rounds to be sure"},
		{6, 2, "reached"},
		{6, 0.5, "NOT reached"},
		{20, 2, "reached"},
	} {
		var s Figures
		f, of := inRounds(&s, "a", c.rounds, c.sample), inRounds(&s, "b", c.rounds, 1)
		f.AtLeast(1, of, "b")
		e := s.entry(f)
		if len(e.Targets) != 1 || e.Targets[0].Outcome != c.want || e.Targets[0].Ratio != c.sample {
			t.Errorf("%d rounds of %g: %+v, want %q", c.rounds, c.sample, e.Targets, c.want)
		}
		if f.Reached() != (c.sample >= 1) {
			t.Errorf("%d rounds of %g: reached %v", c.rounds, c.sample, f.Reached())
		}
	}
}

// The ratio is taken round by round: common drift cancels out, and its interval
// decides whether a target is certain.
func TestRatioOfRounds(t *testing.T) {
	var s Figures
	a, b := s.Figure("group", "a", "ns"), s.Figure("group", "b", "ns")
	for i := range 8 {
		drift := math.Pow(2, float64(i))
		b.Add(drift)
		a.Add(drift * (1.5 + 0.2*float64(i%2)))
	}
	r, ok := a.to(b)
	if !ok || r.low < 1.45 || r.high > 1.75 || r.low == r.high {
		t.Errorf("ratio %+v, want about 1.6 with a narrow interval", r)
	}
	a.AtMost(1.6, b, "b")
	if got := a.targets[0].outcome(a.rounds(), r); got != "reached, but the interval contains the target" {
		t.Errorf("outcome %q", got)
	}
	b.Add(1) // only one of them has this round: only the values remain
	if r, ok = a.to(b); !ok || r.low != r.high {
		t.Errorf("with different rounds: %+v", r)
	}
	s.Keep(8)
	if r, _ = a.to(b); r.low == r.high {
		t.Error("the unfinished round was not dropped")
	}
	if _, ok := a.to(nil); ok {
		t.Error("a ratio to nothing")
	}
}

func TestQuantileNeedsSamples(t *testing.T) {
	var s Figures
	values := make([]float64, 999)
	for i := range values {
		values[i] = float64(i)
	}
	f := s.Figure("group", "p99", "ns")
	f.Quantile(values, 0.99)
	if !f.Measured() || math.Abs(f.Value()-988) > 1 {
		t.Errorf("p99 of 0 to 998: %g, %q", f.Value(), f.missing)
	}
	f = s.Figure("group", "p99.9", "ns")
	f.Quantile(values, 0.999)
	if f.Measured() {
		t.Error("p99.9 of 999 values")
	}
}

// example has a bit of everything.
func example() *Figures {
	s := &Figures{}
	s.Mark("busy machine")
	s.Mark("too little time: the machine is slow, or busy")
	ring := s.Figure("one direction", "bare ring, 64 B written and read", "packets/s")
	link := s.Figure("one direction", "libdray, 64 B, header written and read", "packets/s").Of(ring)
	for i := range 6 {
		ring.Add(4e8 + 1e6*float64(i))
		link.Add(2.5e8 - 1e6*float64(i*i))
	}
	link.AtLeast(0.75, ring, "the bare ring")
	link.causes = []string{"time of the sender: 60 % tx_lane_send of libdray, 30 % memcpy of libc, 10 % everything else"}
	long := s.Figure("one direction", "received in place, sent from the driver's own pool, 1518 B", "packets/s")
	long.Missing("there is no dpdk-testpmd on this machine, since the package is missing, it seems")
	long.AtLeast(1, nil, "nothing")
	s.Figure("adaptive", "one-way p99, 1 k packets/s", "ns").Add(14220435)
	s.Figure("adaptive", "one-way p99, 1 k packets/s", "ns").Mark("the receiver was starved of CPU")
	s.Figure("hidden", "recovery", "ns").hidden = true
	return s
}

func TestTables(t *testing.T) {
	var b strings.Builder
	example().Print(&b)
	example().PrintTargets(&b)
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > width {
			t.Errorf("over %d columns: %q", width, line)
		}
	}
	const golden = "testdata/tables.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("not as in %s (%v):\n%s", golden, err, b.String())
	}
}

func TestDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := example().Document().Write(path); err != nil {
		t.Fatal(err)
	}
	for _, value := range []float64{1, 2} {
		if err := Merge(path, []Entry{{Group: "idle", Name: "add", Value: &value}}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"schema": 1`, `"marks": "busy machine; too little time: the machine is slow, or busy; the receiver was starved of CPU"`, `"outcome": "NOT reached"`, `"name": "add"`, `"value": 2`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), `"name": "add"`); n != 1 {
		t.Errorf("the replaced figure occurs %d times", n)
	}
	if err := os.WriteFile(path, []byte(`{"schema": 99}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Merge(path, nil); err == nil {
		t.Error("another schema was accepted")
	}
}

func TestOthersRun(t *testing.T) {
	for text, want := range map[string]bool{"0.00 0.01 0.05 1/157 1770\n": false, "12.30 5.52 2.27 2/157 1770\n": true, "": false} {
		if othersRun(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/test/testenv"
)

func sampleTrial(id string) Trial {
	h := NewHDR()
	for _, v := range []int64{1, 999, 42_000, 42_000, 1_500_000, HistogramHighest} {
		if err := h.RecordValue(v); err != nil {
			panic(err)
		}
	}
	return Trial{
		Schema: Schema, Run: "r", ID: id, Link: "f1u", From: "a.x", To: "b.x",
		Runtimes: map[string]string{"a.x": "runc"}, Quantity: QLatency,
		Instrument: Instrument{Name: "sockperf", Client: []string{"sockperf", "pp"}, Server: []string{"sockperf", "sr"}},
		Seed:       math.MaxUint64, Start: time.Unix(1700000000, 123).UTC(), Duration: time.Second,
		Marks:   []string{MarkOversubscribed},
		Latency: &Latency{Histogram: FromHDR(h), Halved: true, Sent: 7, Lost: 1},
		Raw:     "line one\nline two \x1b é",
	}
}

func TestWriteThenRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.jsonl")
	w, err := Create(path)
	testenv.Must(t, err)
	want := []Trial{sampleTrial("1"), sampleTrial("2")}
	for _, trial := range want {
		testenv.Must(t, w.Write(trial))
	}
	testenv.Must(t, w.Close())
	got, warnings, err := ReadFile(path)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := w.Write(want[0]); err == nil {
		t.Error("a write after Close succeeded")
	}
	if _, err := Create(path); err == nil {
		t.Error("Create took an existing file")
	}
}

func TestWriterRefusesLineTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.jsonl")
	w, err := Create(path)
	testenv.Must(t, err)
	defer w.Close()
	long := sampleTrial("long")
	long.Raw = strings.Repeat("x", MaxLine)
	if err := w.Write(long); err == nil {
		t.Fatal("a line over MaxLine was written")
	}
	if err := w.Write(sampleTrial("short")); err != nil {
		t.Fatalf("after a refused line: %v", err)
	}
	if got, _, err := ReadFile(path); err != nil || len(got) != 1 {
		t.Errorf("%d trials, error %v", len(got), err)
	}
}

func TestReadTornLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.jsonl")
	w, err := Create(path)
	testenv.Must(t, err)
	for _, id := range []string{"1", "2"} {
		testenv.Must(t, w.Write(sampleTrial(id)))
	}
	w.Close()
	whole, err := os.ReadFile(path)
	testenv.Must(t, err)
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := first + 1; cut < len(whole)-1; cut += 37 {
		got, warnings, err := Read(bytes.NewReader(whole[:cut]))
		if err != nil || len(got) != 1 || len(warnings) != 1 {
			t.Fatalf("cut at %d: %d trials, warnings %v, error %v", cut, len(got), warnings, err)
		}
	}
	got, warnings, err := Read(bytes.NewReader(whole[:len(whole)-1]))
	if err != nil || len(got) != 2 || len(warnings) != 0 {
		t.Errorf("only the newline missing: %d trials, warnings %v, error %v", len(got), warnings, err)
	}
}

func TestReadRejects(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"garbage line":    {`{"schema":3}` + "\nrubbish\n" + `{"schema":3}` + "\n", "line 2: not a record"},
		"empty line":      {"\n", "line 1: not a record"},
		"schema":          {`{"schema":1}` + "\n", "schema 1"},
		"array":           {"[]\n", "not a record"},
		"wrong type":      {`{"schema":3,"seed":-1}` + "\n", "not a record"},
		"overflow":        {`{"schema":3,"seed":99999999999999999999999}` + "\n", "not a record"},
		"duration":        {`{"schema":3,"duration":-1}` + "\n", "negative duration"},
		"histogram range": {`{"schema":3,"latency":{"histogram":{"lowest":1,"highest":9223372036854775807,"digits":3}}}` + "\n", "impossible range"},
		"histogram count": {`{"schema":3,"latency":{"histogram":{"lowest":1,"highest":1000,"digits":3,"counts":[{"v":5,"n":-1}]}}}` + "\n", "impossible count"},
		"histogram order": {`{"schema":3,"latency":{"histogram":{"lowest":1,"highest":1000,"digits":3,"counts":[{"v":5,"n":1},{"v":5,"n":1}]}}}` + "\n", "out of order"},
		"log-linear edge": {`{"schema":3,"one_way":{"latency":{"bits":5,"counts":[{"v":64,"n":1}]}}}` + "\n", "no bucket ends there"},
		"one-way times":   {`{"schema":3,"one_way":{"latency":{"bits":5},"intended":{"bits":5},"lateness":{"bits":5},"ipdv":{"bits":5},"min":2,"max":1}}` + "\n", "one-way times"},
		"delivery":        {`{"schema":3,"delivery":{"sent":1,"received":2}}` + "\n", "do not add up"},
		"requests":        {`{"schema":3,"requests":{"per_second":-1}}` + "\n", "negative request"},
		"long line":       {strings.Repeat("x", MaxLine+1), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Read(strings.NewReader(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want %q", err, c.want)
			}
		})
	}
}

func TestHistogramKeepsCountsExactly(t *testing.T) {
	hdr := NewHDR()
	for v := int64(1); v < HistogramHighest; v = v*3/2 + 1 {
		testenv.Must(t, hdr.RecordValues(v, v%7+1))
	}
	h := FromHDR(hdr)
	back, err := h.HDR()
	testenv.Must(t, err)
	if !hdr.Equals(back) {
		t.Error("the rebuilt histogram differs")
	}
	if h.Total() != hdr.TotalCount() {
		t.Errorf("total %d, want %d", h.Total(), hdr.TotalCount())
	}
}

// Every value is in exactly one bucket, and the generator and the receiver divide by
// the same bucket edges.
func TestLogLinearBuckets(t *testing.T) {
	const bits = 5
	h, err := FromLogLinear(bits, []int64{0, 31, 32, 62, 64, 126, 1 << 20, 1<<20 + 1<<15, 1 << 40}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9})
	testenv.Must(t, err)
	want := []Bucket{{0, 0, 1}, {31, 31, 2}, {32, 32, 3}, {62, 62, 4}, {64, 65, 5}, {126, 127, 6},
		{1 << 20, 1<<20 + 1<<15 - 1, 7}, {1<<20 + 1<<15, 1<<20 + 1<<16 - 1, 8}, {1 << 40, 1<<40 + 1<<35 - 1, 9}}
	got, err := h.Buckets()
	testenv.Must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		bits           int
		lowest, counts []int64
	}{
		"inside a bucket": {bits, []int64{65}, []int64{1}},
		"descending":      {bits, []int64{40, 39}, []int64{1, 1}},
		"negative":        {bits, []int64{-1}, []int64{1}},
		"no count":        {bits, []int64{40}, []int64{0}},
		"uneven":          {bits, []int64{40, 41}, []int64{1}},
		"beyond":          {bits, []int64{1 << 60}, []int64{1}},
		"no bits":         {0, []int64{40}, []int64{1}},
		"too many bits":   {13, []int64{40}, []int64{1}},
		"overflow":        {bits, []int64{40, 41}, []int64{math.MaxInt64, 1}},
	} {
		if _, err := FromLogLinear(c.bits, c.lowest, c.counts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := h.HDR(); err == nil {
		t.Error("a log-linear histogram was accepted as an HDR histogram")
	}
	mixed := Histogram{Bits: 5, Lowest: 1, Highest: 1000, Digits: 3}
	if err := mixed.Check(); err == nil {
		t.Error("a histogram of two geometries was accepted")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":3,"latency":{"histogram":{"lowest":1,"highest":1000,"digits":3,"counts":[{"v":5,"n":1}]}}}` + "\n"))
	f.Add([]byte(`{"schema":3,"latency":{"histogram":{"lowest":1048576,"highest":1125899906842624,"digits":4,"counts":[{"v":1125899906842624,"n":1}]}}}`))
	f.Add([]byte(`{"schema":3,"one_way":{"latency":{"bits":5,"counts":[{"v":65,"n":7}]},"intended":{"bits":5},"lateness":{"bits":5},"ipdv":{"bits":5}}}` + "\n"))
	f.Add([]byte("{\"schema\":3}\n{\"sch"))
	f.Fuzz(func(t *testing.T, in []byte) {
		trials, _, err := Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		for _, trial := range trials {
			var hs []Histogram
			if trial.Latency != nil {
				hs = append(hs, trial.Latency.Histogram)
			}
			if trial.OneWay != nil {
				hs = append(hs, trial.OneWay.Latency)
			}
			for _, h := range hs {
				buckets, err := h.Buckets()
				var n int64
				for _, b := range buckets {
					n += b.Count
				}
				if err == nil && n != h.Total() {
					t.Errorf("%d samples read, %d in the buckets", h.Total(), n)
				}
			}
		}
	})
}

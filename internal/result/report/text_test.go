// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		testenv.Must(t, os.MkdirAll("testdata", 0o755))
		testenv.Must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	testenv.Must(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got; run the test with -update if that is intended):\n%s", path, diff)
	}
}

func text(t *testing.T, f *fixture, width int) []byte {
	t.Helper()
	d := f.load(t)
	d.Dir = "runs/example"
	var b bytes.Buffer
	testenv.Must(t, d.Document().Text(&b, width))
	return b.Bytes()
}

func TestTextGolden(t *testing.T) {
	golden(t, "good.txt", text(t, good(), 0))
	golden(t, "bad.txt", text(t, bad(), 100))
}

func TestJSONGolden(t *testing.T) {
	var b bytes.Buffer
	testenv.Must(t, bad().load(t).Document().JSON(&b))
	golden(t, "bad.json", b.Bytes())
	var out struct {
		Verdicts []struct{ Verdict string }
		Exit     int `json:"exit_code"`
	}
	testenv.Must(t, json.Unmarshal(b.Bytes(), &out))
	words := map[string]int{}
	for _, v := range out.Verdicts {
		words[v.Verdict]++
	}
	if words["met"] != 5 || words["missed"] != 3 || words["not measurable"] != 2 || len(words) != 3 || out.Exit != 4 {
		t.Errorf("verdicts %v, exit code %d", words, out.Exit)
	}
}

func TestEmptyRunHasEmptyLists(t *testing.T) {
	f := newFixture()
	f.plan.Links = nil
	var b bytes.Buffer
	testenv.Must(t, f.load(t).Document().JSON(&b))
	for _, want := range []string{`"verdicts": []`, `"measurements": []`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if got := string(text(t, f, 80)); !strings.Contains(got, "nothing was required") {
		t.Errorf("text of an empty run: %q", got)
	}
}

// Every line fits, even at widths at which columns cannot shrink further.
func TestTextFitsItsWidth(t *testing.T) {
	bench, experiments := newBench(t).load(t), goodExperiments(t).load(t)
	for _, width := range []int{80, 120, 140, 200} {
		var b bytes.Buffer
		b.Write(text(t, bad(), width))
		if err := errors.Join(bench.Document().Text(&b, width), experiments.Document().Text(&b, width), BenchPlan(&b, &bench.Run, width)); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

// Text from files cannot move the cursor or clear the screen.
func TestTextIsHarmless(t *testing.T) {
	f := good()
	f.run.Chain = "x\x1b[2Jy\u202e"
	for i := range f.trials {
		f.trials[i].Marks = []string{"m\x1b]0;title\x07"}
		f.trials[i].Transport = "veth\r\x1b[31m"
	}
	failed := f.trial("f1u", record.QThroughput, "cu-up.f1u", "du.f1u", 9)
	failed.Error = "\x1b[31mred"
	got := string(text(t, f, 100))
	if strings.ContainsAny(got, "\x1b\x07\r\u202e") {
		t.Errorf("control characters reach the terminal: %q", got)
	}
}

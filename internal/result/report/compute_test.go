// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// A function's verdicts and CPU time are in the text and on the page.
func TestComputeIsReported(t *testing.T) {
	d := &Data{Run: Run{Chain: "c"}, Plan: plan.Plan{Functions: []plan.Function{
		{Name: "a", CPUs: []int{2}, Compute: &chain.Compute{Share: 0.6, Deadline: 10e6}}, {Name: "b", CPUs: []int{2}},
	}}}
	for i, share := range []float64{0.64, 0.65, 0.66} {
		d.Trials = append(d.Trials, record.Trial{
			ID: string(rune('x' + i)), Function: "a", From: "a", To: "a", Quantity: record.QShare, Duration: time.Second, Marks: []string{"busy"}, Instrument: record.Instrument{Name: "dray spin"},
			Compute: &record.Compute{Neighbours: []string{"b"}, CPUs: []record.CPU{{CPU: 2, Share: &share, Longest: time.Duration(i) * time.Millisecond}}},
		})
	}
	d.Verdicts = verdict.JudgeCompute(d.Plan.Functions[0], d.Trials)
	if len(d.Measurements()) > 0 {
		t.Errorf("%+v: no link was measured", d.Measurements())
	}
	var text, page bytes.Buffer
	testenv.Must(t, d.Document().Text(&text, 0))
	testenv.Must(t, d.Document().HTML(&page))
	for _, want := range []string{"FUNCTION  REQUIREMENT", "a         share        ≥ 60%", "a         2    dray spin   3       65.0%  2ms           b         busy"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	for _, want := range []string{"cpu share by dray spin, in a", "CPU 2: 64.0%, at most 0s without it"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q on the page", want)
		}
	}
}

func TestSubjects(t *testing.T) {
	link, path, function := verdict.Verdict{}, verdict.Verdict{Path: true}, verdict.Verdict{Function: true}
	for want, of := range map[string][]verdict.Verdict{
		"Link": {link}, "Link or path": {path}, "Function": {function}, "Link or function": {function, link}, "Link, path or function": {path, function},
	} {
		if got := subjects(of); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

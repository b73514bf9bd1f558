// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
)

// spun are trials of function f on CPU 1, with a busy function g.
func spun(longest time.Duration, shares ...float64) []record.Trial {
	var trials []record.Trial
	for i, s := range shares {
		trials = append(trials, record.Trial{
			ID: fmt.Sprintf("s%d", i), Function: "f", Quantity: record.QShare, Duration: time.Second, Marks: []string{}, Instrument: record.Instrument{Name: "dray spin"},
			Compute: &record.Compute{Neighbours: []string{"g"}, CPUs: []record.CPU{{CPU: 1, Share: &s, Longest: longest}}},
		})
	}
	return trials
}

func TestCompute(t *testing.T) {
	f := plan.Function{Name: "f", CPUs: []int{1}, Compute: &chain.Compute{Share: 0.6, Deadline: 10e6}}
	longer := append(spun(time.Millisecond, 0.61, 0.62, 0.62), record.Trial{ID: "o", Function: "f", Quantity: record.QSpin, Duration: time.Second,
		Instrument: record.Instrument{Name: "oslat"}, Compute: &record.Compute{CPUs: []record.CPU{{CPU: 1, Longest: 5 * time.Millisecond}}}})
	elsewhere := spun(time.Millisecond, 0.61, 0.62, 0.62)
	for i := range elsewhere {
		elsewhere[i].Function = "g"
	}
	failed := spun(time.Millisecond, 0.61, 0.62, 0.62)
	failed[2].Compute, failed[2].Error = nil, "dray spin ended too early"
	for _, test := range []struct {
		name            string
		trials          []record.Trial
		share, deadline Word
		says            string
	}{
		{"both met", spun(4*time.Millisecond, 0.61, 0.62, 0.62), Met, Met, "the longest wait in 3 s was 4ms, seen by dray spin"},
		{"share missed", spun(time.Millisecond, 0.49, 0.5, 0.51), Missed, Met, ""},
		{"share open", spun(time.Millisecond, 0.55, 0.6, 0.65), NotMeasurable, Met, ""},
		{"wait too long", spun(4001*time.Microsecond, 0.61, 0.62, 0.62), Met, Missed, ""},
		{"wait too long by another instrument", longer, Met, Missed, "the longest wait in 4 s was 5ms, seen by oslat"},
		{"too few", spun(time.Millisecond, 0.61, 0.62), NotMeasurable, NotMeasurable, "2 usable trials"},
		{"one failed", failed, NotMeasurable, NotMeasurable, "s2: dray spin ended too early"},
		{"other function", elsewhere, NotMeasurable, NotMeasurable, "a function is measured before"},
	} {
		vs := JudgeCompute(f, test.trials)
		if len(vs) != 2 || vs[0].Verdict != test.share || vs[1].Verdict != test.deadline || !strings.Contains(vs[1].Reason, test.says) {
			t.Errorf("%s: %+v", test.name, vs)
			continue
		}
		if !vs[0].Function || vs[0].Link != "f" || vs[0].Required.Text != "≥ 60%" || vs[1].Required.Text != "≤ 4ms without the CPU" || vs[1].Direction != "CPU 1" {
			t.Errorf("%s: %+v", test.name, vs)
		}
	}
	if basis := JudgeCompute(f, longer)[0].Basis; basis != "a busy thread in g" {
		t.Errorf("basis %q", basis)
	}
	// The worst CPU decides.
	f.CPUs = []int{1, 2}
	if vs := JudgeCompute(f, longer); vs[0].Verdict != NotMeasurable || vs[0].Direction != "CPU 2" || vs[1].Verdict != Missed {
		t.Errorf("%+v", vs)
	}
	if vs := JudgeCompute(plan.Function{Name: "f", CPUs: []int{1}}, longer); vs != nil {
		t.Errorf("without compute: %+v", vs)
	}
}

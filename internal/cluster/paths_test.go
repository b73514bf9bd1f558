// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

// aPath is a path as a link, from and to "function.port".
func aPath(name, from, to string, through ...string) plan.Link {
	end := func(text string) plan.End {
		function, port, _ := strings.Cut(text, ".")
		return plan.End{Function: function, Port: port, Face: chain.FaceNative}
	}
	return plan.Link{Name: name, Ends: []plan.End{end(from), end(to)}, Course: &plan.Course{Through: through}, Requires: chain.Requires{Latency: 1e6, Percentile: 99}}
}

// TestPathsOfAGroup share a copy unless a function were draygen and itself.
func TestPathsOfAGroup(t *testing.T) {
	g := &PathGroup{links: []plan.Link{aPath("dl", "cu.f1", "ru.fh", "du")}, specs: map[string]map[string]any{"du": {}}}
	for want, l := range map[bool]plan.Link{true: aPath("ul", "ru.fx", "mec.fx", "du"), false: aPath("through an end", "x.p", "y.p", "cu")} {
		if g.takes(l) != want {
			t.Errorf("%s: %v", l.Name, !want)
		}
	}
	if l := aPath("from a program", "du.fx", "x.p", "other"); g.takes(l) {
		t.Errorf("%s is in the group", l.Name)
	}
	if g.Names() != "dl" || g.Copies() != "copies of du" || (&PathGroup{}).Copies() != "" || !g.runs("du") || g.runs("cu") || !g.endsAt("ru.fh") || g.endsAt("du.fh") {
		t.Errorf("%+v", g)
	}
	if none := (*PathGroup)(nil); none.runs("du") || none.endsAt("ru.fh") {
		t.Error("no group runs something")
	}
	all := g.Unmeasured(errors.New("no image"))
	if len(all) != 1 || all[0].Link != "dl" || all[0].Verdict != verdict.NotMeasurable || all[0].Reason != "no image" || all[0].Required.Text != "≤ 1ms at p99" {
		t.Errorf("%+v", all)
	}
}

// TestPortsOfACopyWithPaths: draygen's at the ends, the programs' own between them, and as ever elsewhere.
func TestPortsOfACopyWithPaths(t *testing.T) {
	c := &Chain{Spec: json.RawMessage(`{"functions":[{"name":"cu","ports":[{"name":"f1"},{"name":"x","face":"dpdk"}]},{"name":"du","ports":[{"name":"f1"},{"name":"fh","face":"dpdk"}]},
		{"name":"ru","ports":[{"name":"fh","face":"dpdk"},{"name":"eth"}]}],"links":[]}`)}
	spec, err := copiedSpec(c, &PathGroup{links: []plan.Link{aPath("dl", "cu.f1", "ru.fh", "du")}, specs: map[string]map[string]any{"du": {}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list(spec["functions"]) {
		for _, p := range list(f["ports"]) {
			got = append(got, fmt.Sprintf("%v.%v=%v", f["name"], p["name"], p["face"]))
		}
	}
	if text := strings.Join(got, " "); text != "cu.f1=native cu.x=native du.f1=<nil> du.fh=dpdk ru.fh=native ru.eth=<nil>" {
		t.Error(text)
	}
}

func TestPathsThatEndAtADevice(t *testing.T) {
	p := &plan.Plan{Links: []plan.Link{{Name: "fh", Transport: "memif", Ends: aPath("", "ru.fh", "du.fh").Ends}, {Name: "f1", Transport: "shm", Ends: aPath("", "du.f1", "cu.f1").Ends}}}
	for to, want := range map[string]string{"ru.fh": "its end ru.fh is a device of memif", "du.f1": ""} {
		why, needs := unsuited(p, aPath("dl", "cu.f1", to))
		if !strings.HasPrefix(why, want) || (why == "") != (want == "") || (needs == "") != (want == "") {
			t.Errorf("%s: %q, %q", to, why, needs)
		}
	}
}

// TestDelaysOfTwoClocks are left undecided for that reason, and losses are not.
func TestDelaysOfTwoClocks(t *testing.T) {
	all := []verdict.Verdict{{Requirement: "latency", Verdict: verdict.NotMeasurable}, {Requirement: "packet_loss_ratio", Verdict: verdict.NotMeasurable}, {Requirement: "latency", Verdict: verdict.Missed}}
	if some := unclocked(all); len(some) != 1 || !strings.Contains(some[0].Reason, "their clocks") || all[0].Reason != some[0].Reason || all[1].Reason != "" || all[2].Reason != "" {
		t.Errorf("%+v of %+v", some, all)
	}
}

// TestPathsHaveTheirVerdicts, and those that were not measured keep what the operator says.
func TestPathsHaveTheirVerdicts(t *testing.T) {
	c := aChain()
	old := []Condition{{Type: "latency", Status: "Unknown", Message: "required: x"}}
	c.Status.Paths = []Path{{Name: "dl", Links: []string{"near"}, Requirements: old}, {Name: "ul", Requirements: old}}
	all := c.MeasuredPaths([]verdict.Verdict{{Link: "near", Requirement: "latency", Verdict: verdict.Missed}, {Link: "dl", Requirement: "latency", Verdict: verdict.Met}})
	if len(all) != 2 || len(all[0].Requirements) != 1 || all[0].Requirements[0].Status != isTrue || all[0].Links[0] != "near" || all[1].Requirements[0].Message != "required: x" || c.Status.Paths[0].Requirements[0].Status != "Unknown" {
		t.Errorf("%+v", all)
	}
}

// TestRecordsOfPathsAreKept here and by the run.
func TestRecordsOfPathsAreKept(t *testing.T) {
	inner := &keeper{}
	for _, k := range []*keeper{inner, {sink: inner}} {
		if err := k.Write(record.Trial{ID: "1"}); err != nil || len(k.trials) != 1 {
			t.Errorf("%v: %+v", err, k)
		}
	}
	if len(inner.trials) != 2 {
		t.Errorf("%+v", inner)
	}
	var none *Run
	none.Leave(nil)
	none.copied(nil, nil)
	if none.sink() != nil {
		t.Error("no run has a sink")
	}
}

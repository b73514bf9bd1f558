// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// TestRunKeepsTheNodesVerdicts where no record decides: of a delay between nodes. Its directory alone then gives
// the same verdicts as the command.
func TestRunKeepsTheNodesVerdicts(t *testing.T) {
	c := aChain()
	c.Status.Links[1].Requirements[0].Message = "required: ≤ 1ms at p99; measured: 200us; bound: ≤ 300us; basis: probes"
	latency := chain.Requires{Latency: units.Duration(time.Millisecond), Percentile: 99}
	near, far := latency, latency
	lost := units.Ratio(0.1)
	near.MinBitrate, far.LossRatio = 1e9, &lost
	p := &plan.Plan{Chain: "f1", Functions: []plan.Function{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Links: []plan.Link{
		{Name: "near", Transport: "shm", MTU: 1400, Requires: near, Ends: []plan.End{{Function: "a", Port: "near"}, {Function: "b", Port: "near"}}},
		{Name: "far", Transport: "vxlan", MTU: 1400, Requires: far, Ends: []plan.End{{Function: "a", Port: "far"}, {Function: "c", Port: "far"}}},
	}}
	r := NewRun(filepath.Join(t.TempDir(), "run"), c, verify.Options{Seed: 7}, report.Program{Dray: "v1"})
	if _, err := r.begin(p, c, &report.RunCluster{Links: []report.ClusterLink{c.Status.Links[0].Reported(), c.Status.Links[1].Reported()}}); err != nil {
		t.Fatal(err)
	}
	var measured []verdict.Verdict
	for _, l := range p.Links {
		measured = append(measured, verdict.Judge(verdict.FromPlan(l), nil)...)
	}
	if _, err := r.Finish(c, measured, 0, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := report.Load(r.Path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]verdict.Verdict{}
	for _, v := range data.Verdicts {
		got[v.Link+" "+v.Requirement] = v
	}
	if v := got["far latency"]; v.Verdict != verdict.Met || v.Bound.Text != "≤ 300us" || v.Basis != "probes" || !strings.Contains(v.Method, "by the nodes") {
		t.Errorf("%+v", v)
	}
	links, err := c.Measured(c, measured)
	if err != nil || len(got) != 4 {
		t.Errorf("%v: %+v", err, got)
	}
	for _, l := range links {
		for _, q := range l.Requirements {
			if word := got[l.Name+" "+q.Type].Verdict; word != q.Word() || (word == verdict.Met) != (l.Name+" "+q.Type == "far latency") {
				t.Errorf("%s %s: the directory says %q, the command %q", l.Name, q.Type, word, q.Word())
			}
		}
	}
	if data.Run.ExitCode != 5 || data.Run.Links[1].Transport != "vxlan" || data.Run.Seed != 7 {
		t.Errorf("%+v", data.Run)
	}
}

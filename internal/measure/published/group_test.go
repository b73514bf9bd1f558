// SPDX-License-Identifier: Apache-2.0

package published

import (
	"slices"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// runOf is a run with a row of each cell, and a claim that compares the first two.
func runOf(cells ...experiment.Cell) *report.ExperimentsRun {
	e := experiment.Experiment{Name: "x"}
	for _, c := range cells {
		e.Rows = append(e.Rows, experiment.Row{Name: c.String(), Figure: "throughput", Cell: c})
	}
	e.Claims = []experiment.Claim{{Text: "t", Less: experiment.RowNames{e.Rows[0].Name}, Than: experiment.RowNames{e.Rows[1].Name}}}
	return &report.ExperimentsRun{Rounds: 5, Trial: time.Second, Profile: Quick, AtMost: time.Hour, Emulated: true, Experiments: []experiment.Experiment{e}}
}

// Cells that need the same chain share it: the tools between two functions, and the loads of frames. One that is
// measured twice in a round does not, nor one that is measured in fewer rounds.
func TestCellsShareAChain(t *testing.T) {
	requests, vm, vmRequests, cyclictest := tcp("veth"), tcp("veth"), tcp("veth"), experiment.Cell{Tool: experiment.ToolCyclictest, Runtime: chain.RuntimeRunc}
	requests.Tool, vm.Runtime, vmRequests.Tool, vmRequests.Runtime = experiment.ToolRequests, chain.RuntimeVM, experiment.ToolRequests, chain.RuntimeVM
	again := requests
	again.Qdisc, again.Rate = "htb", 1000
	frames := experiment.Cell{Tool: experiment.ToolFrames, Transport: "memif", Face: chain.FaceDPDK, Runtime: chain.RuntimeRunc, Size: 64, VNF: "direct", Load: "max"}
	slow, other, stressed := frames, frames, cyclictest
	slow.Load, other.Transport, stressed.Stress = "1kpps", "shm", true
	run := runOf(frames, tcp("bridge"), slow, vm, vmRequests, tcp("veth"), requests, again, other, cyclictest, stressed)
	run.Experiments[0].Claims = append(run.Experiments[0].Claims, experiment.Claim{Text: "t", Less: experiment.RowNames{slow.String()}, Than: experiment.RowNames{tcp("bridge").String()}})
	var got [][]string
	for _, g := range groups(run) {
		got = append(got, g.names())
	}
	want := [][]string{
		{frames.String(), slow.String()}, {tcp("bridge").String()}, {vm.String(), vmRequests.String()}, {tcp("veth").String(), requests.String()},
		{again.String()}, {other.String()}, {cyclictest.String()}, {stressed.String()},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, not %v", got, want)
	}
	for _, item := range itemsOf(run) {
		if item.Spare != (item.ID == vm.String()) {
			t.Errorf("%s: spare %v; no claim relies on an emulated machine, and all others are not emulated", item.ID, item.Spare)
		}
		if alone := expectIn(run, vm); item.ID == vm.String() && (item.Expect < alone || item.Expect > alone+expectIn(run, vmRequests)-vmExtra) {
			t.Errorf("two cells in a machine are expected to take %v, one %v", item.Expect, alone)
		}
	}
}

// An item's trials have the names of its cells, so that a resumed run knows which it has.
func TestTrialsAreNamedByTheirCells(t *testing.T) {
	turn := &runner.Turn{Round: runner.Round{Number: 1}}
	if id := turn.TrialID(tcp("veth").String()); id != "tcp/veth/runc-r1" {
		t.Error(id)
	}
}

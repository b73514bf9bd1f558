// SPDX-License-Identifier: Apache-2.0

package published

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

func below(queue string, runtime chain.RuntimeName) experiment.Cell {
	c := tcp("veth")
	c.Qdisc, c.Rate, c.Queue, c.Runtime = "htb", 100_000_000, queue, runtime
	return c
}

func TestDivide(t *testing.T) {
	sfq, vm, rt := below("sfq", chain.RuntimeRunc), below("sfq", chain.RuntimeVM), experiment.Cell{Tool: experiment.ToolCyclictest, Kernel: chain.VMKernelRT}
	nodes, large := experiment.Cell{Tool: experiment.ToolChecks, Runtime: chain.RuntimeRunc, Nodes: 2}, host2()
	large.Host.NUMANodes = 2
	inside := host2()
	inside.Host.CmdLine = inventory.LabParameter
	realtime := host2()
	realtime.Host.Realtime = true
	free := func(chain.VMKernel) string { return "" }
	for name, c := range map[string]struct {
		inv     *inventory.Inventory
		lab     Lab
		cell    experiment.Cell
		kernel  chain.VMKernel
		skipped string
	}{
		"has it":        {host2(), Lab{}, tcp("veth"), "", ""},
		"lacks a queue": {host2(), Lab{Obstacle: free}, sfq, chain.VMKernelGeneric, ""},
		"a machine":     {host2(), Lab{Obstacle: free}, vm, "", "nested emulation"},
		"a delay":       {host2(), Lab{Obstacle: free}, experiment.Cell{Tool: experiment.ToolTCP, Transport: "vxlan", Runtime: chain.RuntimeRunc, Hosts: 2, Delay: 50_000}, chain.VMKernelGeneric, ""},
		"not preempted": {host2(), Lab{Obstacle: free}, experiment.Cell{Tool: experiment.ToolCyclictest, Kernel: chain.VMKernelLowLatency}, chain.VMKernelLowLatency, ""},
		"not realtime":  {host2(), Lab{Obstacle: free}, rt, chain.VMKernelRT, ""},
		"turned off":    {host2(), Lab{Off: "leave out --no-lab", Obstacle: free}, sfq, "", "leave out --no-lab"},
		"no QEMU":       {host2(), Lab{Obstacle: func(chain.VMKernel) string { return "apt install qemu-system-x86" }}, sfq, "", "no sfq: apt install"},
		"in the lab":    {inside, Lab{}, sfq, "", "this is already a lab guest"},
		"one node":      {host2(), Lab{Obstacle: free}, nodes, chain.VMKernelGeneric, ""},
		"one node, off": {host2(), Lab{Off: "leave out --no-lab"}, nodes, "", "this machine has one NUMA node: leave out --no-lab"},
		"no datapath": {host2(), Lab{Obstacle: free}, experiment.Cell{Tool: experiment.ToolTCP, Transport: "ovs", Runtime: chain.RuntimeRunc, Datapath: experiment.DatapathKernel},
			chain.VMKernelGeneric, ""},
		"no datapath for frames": {host2(), Lab{Obstacle: free}, experiment.Cell{Tool: experiment.ToolFrames, Transport: "ovs", Face: chain.FaceNetdev, Runtime: chain.RuntimeRunc, Size: 64, Load: "10kpps", Datapath: experiment.DatapathKernel},
			chain.VMKernelGeneric, ""},
	} {
		t.Run(name, func(t *testing.T) {
			lab, skipped := Divide(c.inv, c.lab, []experiment.Cell{c.cell})
			if lab[c.cell.String()] != c.kernel || (skipped[c.cell.String()] != "") != (c.skipped != "") || !strings.Contains(skipped[c.cell.String()], c.skipped) {
				t.Errorf("%v, %v", lab, skipped)
			}
		})
	}
	if lacks := Lacks(large, false, nodes); len(lacks) != 0 {
		t.Errorf("a machine with two nodes lacks %v", lacks)
	}
	if lacks := Lacks(realtime, false, rt); len(lacks) != 0 {
		t.Errorf("a realtime kernel lacks %v", lacks)
	}
}

// labRun is a run with one cell for a guest.
func labRun() *report.ExperimentsRun {
	sfq := below("sfq", chain.RuntimeRunc)
	list := two()
	list[1].Rows = append(list[1].Rows, experiment.Row{Name: "s", Title: "s", Figure: "throughput", Cell: sfq})
	return &report.ExperimentsRun{
		Schema: report.ExperimentsSchema, ID: "x", Profile: "quick", Rounds: 5, LabRounds: 1, Trial: time.Second, Emulated: true, Experiments: list, Skipped: map[string]string{},
		Lab: map[string]chain.VMKernel{sfq.String(): chain.VMKernelGeneric},
	}
}

func TestPartHasTheCellsOfItsKernel(t *testing.T) {
	run := labRun()
	run.AtMost, run.Took = 10*time.Minute, time.Minute
	part := Part(run, chain.VMKernelGeneric)
	if cells := Cells(part.Experiments); len(cells) != 1 || cells[0].Queue != "sfq" || part.Rounds != 1 || !part.Part || part.AtMost != 3*time.Minute {
		t.Errorf("%v of %+v", cells, part)
	}
	if needs := Needs(run, chain.VMKernelGeneric); !slices.Equal(needs, []string{"htb", "sfq"}) {
		t.Errorf("it needs %v", needs)
	}
	if slices.ContainsFunc(here(run), func(c experiment.Cell) bool { return c.Queue != "" }) {
		t.Error("the cell is measured here as well")
	}
	if rest := len(run.Experiments[1].Rows); rest != 4 {
		t.Errorf("%d rows remain in the run", rest)
	}
}

// The second guest gets what the first leaves of the lab's time.
func TestGuestsShareTheLabsTime(t *testing.T) {
	run := labRun()
	run.AtMost = 10 * time.Minute
	rt := experiment.Cell{Tool: experiment.ToolCyclictest, Kernel: chain.VMKernelRT}
	run.Experiments[0].Rows = append(run.Experiments[0].Rows, experiment.Row{Name: "rt", Title: "rt", Figure: "wakeup_max", Cell: rt})
	run.Lab[rt.String()] = chain.VMKernelRT
	alike := Part(run, chain.VMKernelGeneric).AtMost
	if alike < 90*time.Second || alike > 3*time.Minute {
		t.Errorf("the first of two has %v", alike)
	}
	many := labRun()
	many.AtMost = run.AtMost
	many.Experiments[0].Rows = slices.Clone(run.Experiments[0].Rows)
	many.Lab[rt.String()] = chain.VMKernelRT
	for _, rate := range []units.Bitrate{1e6, 2e6, 3e6, 4e6, 5e6, 6e6, 7e6, 8e6} {
		c := below("sfq", chain.RuntimeRunc)
		c.Rate = rate
		many.Experiments[0].Rows = append(many.Experiments[0].Rows, experiment.Row{Name: rate.String(), Title: "s", Figure: "throughput", Cell: c})
		many.Lab[c.String()] = chain.VMKernelGeneric
	}
	if most := Part(many, chain.VMKernelGeneric).AtMost; most < alike+30*time.Second || most+Part(many, chain.VMKernelRT).AtMost > 4*time.Minute+time.Second {
		t.Errorf("with nine cells instead of one it has %v, and with one %v", most, alike)
	}
	run.LabDone, run.Took = []chain.VMKernel{chain.VMKernelGeneric}, time.Minute
	if most := Part(run, chain.VMKernelRT).AtMost; most != 3*time.Minute {
		t.Errorf("the second has %v", most)
	}
	run.Took = 5 * time.Minute
	if most := Part(run, chain.VMKernelRT).AtMost; most != time.Second {
		t.Errorf("after the lab's time it has %v", most)
	}
}

func TestOnlyAGuestAdoptsAPart(t *testing.T) {
	part := Part(labRun(), chain.VMKernelGeneric)
	if err := Adopt(part, report.Program{}, host2()); err == nil || !strings.Contains(err.Error(), "resume that run") || part.Host.Hostname != "" {
		t.Errorf("the host accepts it: %v", err)
	}
	inside := host2()
	inside.Host.CmdLine, inside.Host.Kernel = inventory.LabParameter, "6.1"
	if err := Adopt(part, report.Program{}, inside); err != nil || part.Host.Kernel != "6.1" {
		t.Errorf("%v: on %q", err, part.Host.Kernel)
	}
	other := host2()
	other.Host.CmdLine, other.Host.Kernel = inventory.LabParameter, "6.2"
	if err := Adopt(part, report.Program{}, other); err != nil || part.Host.Kernel != "6.1" {
		t.Errorf("a run begun on 6.1 is attributed to %q: %v", part.Host.Kernel, err)
	}
}

func TestLabRounds(t *testing.T) {
	run := labRun()
	if n := LabRounds(run, true); n != 1 {
		t.Errorf("quick, emulated: %d rounds", n)
	}
	if n := LabRounds(run, false); n != 5 {
		t.Errorf("quick with KVM: %d rounds", n)
	}
	run.Profile = "paper"
	if n := LabRounds(run, true); n != 5 {
		t.Errorf("paper: %d rounds", n)
	}
}

func TestEstimateCountsTheLab(t *testing.T) {
	run := labRun()
	with := Estimate(run)
	run.LabDone = []chain.VMKernel{chain.VMKernelGeneric}
	if without := Estimate(run); with < without+labBoot {
		t.Errorf("%v with the lab, %v without", with, without)
	}
}

// The run includes what the guest measured; the rest has a reason.
func TestMerge(t *testing.T) {
	run := labRun()
	more := below("codel", chain.RuntimeRunc)
	run.Experiments[1].Rows = append(run.Experiments[1].Rows, experiment.Row{Name: "m", Title: "m", Figure: "throughput", Cell: more})
	run.Lab[more.String()] = chain.VMKernelGeneric
	s, err := Begin(t.TempDir(), run)
	testenv.Must(t, err)
	defer s.Close()
	guest, err := Begin(PartDir(s.Path, chain.VMKernelGeneric), Part(run, chain.VMKernelGeneric))
	testenv.Must(t, err)
	sfq := below("sfq", chain.RuntimeRunc)
	id := (&runner.Turn{Item: runner.Item{ID: sfq.String()}}).ID()
	if err := guest.Sink.Write(record.Trial{Schema: record.Schema, Run: "x", ID: id, Marks: []string{record.MarkLab}, Experiment: &record.Experiment{Cell: sfq.String()}}); err != nil {
		t.Fatal(err)
	}
	guest.Run.NoLimit = "no dray-limit"
	testenv.Must(t, errors.Join(guest.Save(), guest.Close()))
	for range 2 { // the second time adds nothing
		testenv.Must(t, Merge(s, chain.VMKernelGeneric, errors.New("killed")))
	}
	if !s.Done[id] || run.Skipped[more.String()] != "the lab guest failed: killed" || run.Skipped[sfq.String()] != "" {
		t.Errorf("%v, %v", s.Done, run.Skipped)
	}
	data, err := report.LoadExperiments(s.Path)
	if err != nil || len(data.Trials) != 1 {
		t.Errorf("%d trials, %v", len(data.Trials), err)
	}
	if run.NoLimit != "in a lab guest: no dray-limit" {
		t.Errorf("the run's reason for the guest's missing limit: %q", run.NoLimit)
	}
	if _, err := os.Stat(PartDir(s.Path, chain.VMKernelGeneric)); err != nil {
		t.Error(err)
	}
}

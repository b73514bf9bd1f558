// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/test/testenv"
)

// One function that starts here, five times, and one link with a queue that few
// kernels have built in, once if it is emulated:
//
//	a        a.p0 --[htb over sfq]-- b.p1
const labExperiment = `apiVersion: drayage/v1
kind: Experiment
name: divided
title: Here and in the lab
source: nobody
rows:
  - {name: here, title: starting, figure: start_time, cell: {tool: start, runtime: process}}
  - {name: lab, title: TCP over SFQ, figure: throughput, cell: {tool: tcp, transport: veth, runtime: process, qdisc: htb, rate: 20Mbps, queue: sfq}}
  - {name: machine, title: the same in a VM, figure: throughput, cell: {tool: tcp, transport: bridge, runtime: vm, qdisc: htb, rate: 20Mbps, queue: sfq}}
`

func TestExperimentInLab(t *testing.T) {
	testenv.Program(t, "iperf3", "tc", guest.Emulator, "depmod")
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	if err := host.ProbeQdisc("sfq"); !errors.Is(err, host.ErrUnsupported) {
		t.Skipf("this host's kernel has sfq, so that nothing is for the lab: %v", err)
	}
	file := b.file(labExperiment)
	if r := b.want(0, "bench", file, "--dry-run", "--no-lab"); !strings.Contains(r.Stdout, "leave out --no-lab") {
		t.Errorf("without the lab: %s", r)
	}
	dir := filepath.Join(t.TempDir(), "out")
	type result struct{ Lines []report.ExperimentLine }
	got := decode[result](t, b.want(0, "bench", file, "--out", dir, "--json"))
	if len(got.Lines) != 3 {
		t.Fatalf("%+v", got.Lines)
	}
	here, lab, machine := got.Lines[0], got.Lines[1], got.Lines[2]
	if here.N != 5 || here.Measured == nil || slices.Contains(here.Marks, record.MarkLab) {
		t.Errorf("here: %+v", here)
	}
	if lab.Measured == nil || *lab.Measured <= 0 || *lab.Measured > 25 || !slices.Contains(lab.Marks, record.MarkLab) {
		t.Errorf("in the lab: %+v", lab)
	}
	if machine.Measured != nil || !strings.Contains(machine.NotRun, "nested emulation") {
		t.Errorf("a machine in the lab: %+v", machine)
	}
	for _, trial := range benchRecords(t, dir) {
		if slices.Contains(trial.Marks, record.MarkLab) && !strings.Contains(trial.Env.Qdiscs["a.p0"], "qdisc sfq d7b: parent d7a:1") {
			t.Errorf("the lab's link had %v", trial.Env.Qdiscs)
		}
	}
	if parts, _ := filepath.Glob(filepath.Join(dir, "lab-*")); len(parts) > 0 {
		t.Errorf("left behind: %v", parts)
	}
	if _, err := os.Stat(filepath.Join(dir, report.PageFile)); err != nil {
		t.Error(err)
	}
}

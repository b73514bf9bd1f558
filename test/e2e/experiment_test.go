// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/test/testenv"
)

// One link, and functions without links, five rounds:
//
//	a.p0 ---veth--- b.p1        a        a  b  open
const tinyExperiment = `apiVersion: drayage/v1
kind: Experiment
name: tiny
title: TCP and starting
source: nobody
rows:
  - {name: tcp, title: TCP, published: 1 Gb/s, value: 1000, figure: throughput, cell: {tool: tcp, transport: veth, runtime: process}}
  - {name: start, title: starting, figure: start_time, cell: {tool: start, runtime: process}}
  - {name: back, title: replaced, figure: back_after, cell: {tool: recovery, runtime: process}}
  - {name: hidden, title: processes are hidden, figure: hides_processes, cell: {tool: checks, runtime: runc}}
  - {name: caps, title: no capabilities, figure: drops_capabilities, cell: {tool: checks, runtime: runc}}
  - {name: rings, title: TCP over DPDK's rings, figure: throughput, cell: {tool: tcp, transport: memif, runtime: process}}
  - {name: nic, title: a NIC, not_run: it needs a NIC}
claims:
  - {text: TCP is slower over a NIC, less: nic, than: tcp}
`

func TestTinyExperiment(t *testing.T) {
	testenv.Program(t, "iperf3", "runc")
	b := newBench(t)
	file := b.file(tinyExperiment)
	if r := b.want(0, "bench", file, "--dry-run"); !strings.Contains(r.Stdout, "start/process") {
		t.Errorf("dry run: %s", r)
	}
	dir := filepath.Join(t.TempDir(), "out")
	type result struct {
		Lines  []report.ExperimentLine
		Claims []report.ClaimLine
	}
	got := decode[result](t, b.want(0, "bench", file, "--out", dir, "--seed", "3", "--json"))
	for _, l := range got.Lines {
		switch l.Row {
		case "hidden", "caps":
			if l.N != 5 || l.Holds == nil || !*l.Holds || l.Failed != "" {
				t.Errorf("%s: %+v", l.Row, l)
			}
		case "tcp", "start", "back":
			if l.N != 5 || l.Measured == nil || *l.Measured <= 0 || l.Low == nil || l.Failed != "" {
				t.Errorf("%s: %+v", l.Row, l)
			}
		default:
			if l.NotRun == "" || l.Measured != nil {
				t.Errorf("%s: %+v", l.Row, l)
			}
		}
	}
	if len(got.Lines) != 7 || got.Lines[0].Ratio == nil || len(got.Claims) != 1 || got.Claims[0].Word != report.ClaimUndecided {
		t.Errorf("%d lines, claims %+v", len(got.Lines), got.Claims)
	}
	ids := trialIDs(t, benchRecords(t, dir))
	if len(ids) != 20 {
		t.Errorf("%d records", len(ids))
	}
	if r := b.want(0, "report", dir); !strings.Contains(r.Stdout, "not run here: it needs a NIC") {
		t.Errorf("report: %s", r)
	}
	if page, err := os.ReadFile(filepath.Join(dir, report.PageFile)); err != nil || !strings.Contains(string(page), `id="tiny"`) {
		t.Errorf("page: %v", err)
	}
	if r := b.want(1, "bench", "--resume", dir); !strings.Contains(r.Err, "finished") {
		t.Errorf("a finished run is resumed: %s", r)
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drayage/dray/experiments"
	"github.com/drayage/dray/internal/measure/bench"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/layout"
	"github.com/drayage/dray/internal/spec/matrix"
)

// benchPlanned is what --dry-run prints as JSON.
type benchPlanned struct {
	Matrix   matrix.Matrix     `json:"matrix"`
	Seed     uint64            `json:"seed"`
	Baseline string            `json:"baseline"`
	Seconds  float64           `json:"seconds"` // estimate
	Rows     []report.BenchRow `json:"rows"`
}

// benchPlan prints what a run will do.
func (a *app) benchPlan(run *report.BenchRun) error {
	a.endProgress()
	about := bench.Estimate(run)
	if a.json {
		return a.printJSON(schemaBenchPlan, benchPlanned{run.Matrix, run.Seed, run.Baseline, about.Seconds(), run.Rows})
	}
	head := fmt.Sprintf("%s: %s at %s, %s, trials of %v, about %v", run.Matrix.Name,
		count(bench.Runnable(run.Rows), "configuration"), count(len(run.Matrix.Loads), "load"), count(run.Matrix.Repetitions, "round"),
		time.Duration(run.Matrix.Trial), about.Round(time.Second))
	return a.printText(func(w io.Writer, width int) error {
		fmt.Fprintf(w, "%s\n\n", strings.Join(layout.Wrap(head, width), "\n"))
		return report.BenchPlan(w, run, width)
	})
}

// benchListed is what --list prints as JSON.
type benchListed struct {
	Matrices    []benchMatrixItem     `json:"matrices"`
	Experiments []experimentItem      `json:"experiments"`
	Transports  []inventory.Transport `json:"transports"`
}

type benchMatrixItem struct {
	Name string        `json:"name"`
	File string        `json:"file"`
	Text matrix.Matrix `json:"matrix"`
}

// benchList prints the built-in matrices, and the transports of this host.
func (a *app) benchList(ctx context.Context) error {
	m, err := matrix.Parse("quick", experiments.BenchQuick())
	if err != nil {
		return err
	}
	items, err := experimentItems()
	if err != nil {
		return err
	}
	h, err := a.benchHost(ctx)
	if err != nil {
		return err
	}
	a.endProgress()
	if a.json {
		return a.printJSON(schemaBenchList, benchListed{[]benchMatrixItem{{m.Name, "experiments/bench-quick.yaml", *m}}, items, h.Inventory.Transports})
	}
	return a.printText(func(w io.Writer, width int) error {
		if err := printMatrices(w, width, m, items); err != nil {
			return err
		}
		fmt.Fprintln(w, "\nTransports of this host")
		return report.BenchPlan(w, bench.NewRun(m, nil, h.Inventory, h.program, 1), width)
	})
}

func printMatrices(w io.Writer, width int, quick *matrix.Matrix, items []experimentItem) error {
	var t layout.Table
	t.Add("Built-in matrices")
	t.Add("  "+quick.Name, fmt.Sprintf("experiments/bench-quick.yaml: every transport, %s, %v at most", count(quick.Repetitions, "round"), time.Duration(quick.AtMost)))
	t.Add("")
	t.Add("Published experiments")
	for _, e := range items {
		t.Add("  "+e.Name, fmt.Sprintf("%s: %s (%s)", e.Title, count(e.Rows, "row"), e.Source))
	}
	return t.Write(w, width)
}

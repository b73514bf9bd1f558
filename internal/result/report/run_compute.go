// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
)

// computeSections show what the functions with compute got of their CPUs; none if there are
// no such trials.
func (d *Data) computeSections(a anchors) []document.Section {
	t := &document.Table{Label: "CPU time of functions", Columns: []document.Column{
		{Head: "Function", Key: true, Text: true}, {Head: "CPU", Key: true, Text: true}, {Head: "Instrument", Text: true}, {Head: "Trials"}, {Head: "Share"}, {Head: "Longest wait"}, {Head: "Busy too", Text: true},
	}}
	for _, f := range d.Plan.Functions {
		for _, cpu := range f.CPUs {
			t.Rows = append(t.Rows, d.computeRows(f, cpu, a)...)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []document.Section{{ID: "compute", Title: "CPU time of functions", Blocks: []document.Block{{Table: t, Notes: []string{
		"The share is a mean over trials, and the longest wait the longest of all trials in which a thread could run and had no CPU.",
	}}}}}
}

// computeRows have a row for each instrument that measured a function's CPU.
func (d *Data) computeRows(f plan.Function, cpu int, a anchors) []document.Row {
	var rows []document.Row
	for _, q := range []record.Quantity{record.QShare, record.QSpin, record.QWakeup} {
		var ids, marks, busy []string
		var shares []float64
		var longest time.Duration
		tool := ""
		for _, t := range d.Trials {
			if t.Function != f.Name || t.Quantity != q || t.Compute == nil || t.Warmup {
				continue
			}
			at := slices.IndexFunc(t.Compute.CPUs, func(c record.CPU) bool { return c.CPU == cpu })
			if at < 0 {
				continue
			}
			got := t.Compute.CPUs[at]
			ids, marks, tool, busy = append(ids, t.ID), append(marks, t.Marks...), t.Instrument.Name, t.Compute.Neighbours
			longest = max(longest, got.Longest)
			if got.Share != nil {
				shares = append(shares, *got.Share)
			}
		}
		if len(ids) == 0 {
			continue
		}
		slices.Sort(marks)
		rows = append(rows, document.Row{
			Cells:   document.Text(f.Name, fmt.Sprint(cpu), tool, fmt.Sprint(len(ids)), shareText(shares), verdict.FormatDuration(float64(longest)), orNone(strings.Join(busy, ", "))),
			Records: a.refs(ids), Marks: slices.Compact(marks),
		})
	}
	return rows
}

func shareText(shares []float64) string {
	if len(shares) == 0 {
		return document.None
	}
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	return fmt.Sprintf("%.1f%%", 100*sum/float64(len(shares)))
}

// cpuTexts are the figures of a trial of a function.
func cpuTexts(c *record.Compute) string {
	var parts []string
	for _, cpu := range c.CPUs {
		text := fmt.Sprintf("CPU %d: ", cpu.CPU)
		if cpu.Share != nil {
			text += shareText([]float64{*cpu.Share}) + ", "
		}
		parts = append(parts, text+"at most "+verdict.FormatDuration(float64(cpu.Longest))+" without it")
	}
	return strings.Join(parts, "; ")
}

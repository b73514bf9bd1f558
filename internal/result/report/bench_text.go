// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// benchColumn is one column of the table. One that says the same in every row
// that was measured goes into the line above the table instead, if it moves. A
// key stands in each part of a table that is too wide for a terminal.
type benchColumn struct {
	head  string
	cell  func(l *BenchLine) string
	moves bool
	key   bool
}

func benchColumns(baseline string) []benchColumn {
	return []benchColumn{
		{head: "TRANSPORT", cell: func(l *BenchLine) string { return plain(l.Config.Transport) }, key: true},
		{head: "PORTS", cell: func(l *BenchLine) string { return plain(l.Config.Face) }, key: true},
		{head: "RUNTIME", cell: func(l *BenchLine) string { return plain(l.Config.Runtime) }, moves: true, key: true},
		{head: "FRAMES", cell: func(l *BenchLine) string { return sizeWords(plain(l.Config.Size)) }, moves: true, key: true},
		{head: "THROUGH", cell: func(l *BenchLine) string { return plain(l.Config.VNF) }, moves: true, key: true},
		{head: "LOAD", cell: func(l *BenchLine) string { return plain(l.Load) }, moves: true, key: true},
		{head: "RATE", cell: func(l *BenchLine) string { return valueOr(l.Rate, ppsText) }},
		{head: "95 %", cell: func(l *BenchLine) string { return orNone(intervalText(l.Rate)) }},
		{head: "BITS", cell: func(l *BenchLine) string { return valueOr(l.Bits, bpsText) }},
		{head: "LOST", cell: func(l *BenchLine) string { return l.lossPercent() }},
		{head: "LATENCY AT", cell: func(l *BenchLine) string { return plain(l.LatencyLoad) }, moves: true},
		{head: "P50", cell: func(l *BenchLine) string { return l.atPercentile(50) }},
		{head: "P99", cell: func(l *BenchLine) string { return l.atPercentile(99) }},
		{head: "P99.9", cell: func(l *BenchLine) string { return l.atPercentile(99.9) }},
		{head: "MAX", cell: func(l *BenchLine) string { return l.longest() }},
		{head: "CORES", cell: func(l *BenchLine) string { return cost(l, func(c *BenchCost) *BenchValue { return c.Cores }, three) }},
		{head: "CPU", cell: func(l *BenchLine) string {
			return cost(l, func(c *BenchCost) *BenchValue { return c.Machine }, percentText)
		}},
		{head: "CYC/PKT", cell: func(l *BenchLine) string { return cost(l, func(c *BenchCost) *BenchValue { return c.Cycles }, three) }},
		{head: "MEMORY", cell: func(l *BenchLine) string {
			return cost(l, func(c *BenchCost) *BenchValue { return c.Memory }, memoryText)
		}},
		{head: "OF LIMIT", cell: func(l *BenchLine) string { return limitText(l.Limit) }},
		{head: "OF " + strings.ToUpper(plain(baseline)), cell: func(l *BenchLine) string { return ratioText(l.Base) }},
		{head: "PRIVILEGES", cell: func(l *BenchLine) string { return plain(l.Privileges) }},
		{head: "MARKS", cell: func(l *BenchLine) string { return marks(l.marksOf()) }},
	}
}

func orNone(s string) string {
	if s == "" {
		return noFigure
	}
	return s
}

func cost(l *BenchLine, of func(*BenchCost) *BenchValue, format func(float64) string) string {
	if l.Cost == nil {
		return noFigure
	}
	return valueOr(of(l.Cost), format)
}

// limitText is a share of the physical limit.
func limitText(r *BenchRatio) string {
	if r == nil {
		return noFigure
	}
	return three(100*r.Ratio) + " %"
}

// Text writes the table for a terminal. A width of 0 means no limit.
func (d *BenchData) Text(w io.Writer, width int) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n\n", plain(d.Run.Matrix.Name), d.headline())
	columns, common := d.split(benchColumns(d.Run.Baseline))
	if len(common) > 0 {
		fmt.Fprintf(&b, "All rows: %s\n\n", strings.Join(common, ", "))
	}
	if err := d.writeFigures(&b, columns, width); err != nil {
		return err
	}
	if err := writeWithout(&b, d.without(), width); err != nil {
		return err
	}
	d.writeFacts(&b, width)
	fmt.Fprintf(&b, "Report: %s\n", filepath.Join(d.Dir, PageFile))
	_, err := w.Write(b.Bytes())
	return err
}

// writeFigures writes the table, in parts below each other where a terminal is too
// narrow for it.
func (d *BenchData) writeFigures(w io.Writer, columns []benchColumn, width int) error {
	var rows [][]string
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.state() != "" {
			continue
		}
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(l))
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return nil
	}
	for _, part := range partsOf(columns, rows, width) {
		t := table{}
		for _, at := range part {
			t.head = append(t.head, columns[at].head)
		}
		for _, row := range rows {
			var cells []string
			for _, at := range part {
				cells = append(cells, row[at])
			}
			t.add(cells...)
		}
		if err := t.write(w, width); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// partsOf shares the columns out over as many tables as it takes for each to fit
// the width, every one with the keys first. A width of 0 means no limit.
func partsOf(columns []benchColumn, rows [][]string, width int) [][]int {
	var keys []int
	keyWidth := 0
	widths := make([]int, len(columns))
	for at, c := range columns {
		widths[at] = utf8.RuneCountInString(c.head)
		for _, row := range rows {
			widths[at] = max(widths[at], utf8.RuneCountInString(row[at]))
		}
		widths[at] += len(gap)
		if c.key {
			keys = append(keys, at)
			keyWidth += widths[at]
		}
	}
	parts := [][]int{slices.Clone(keys)}
	used := keyWidth
	for at, c := range columns {
		if c.key {
			continue
		}
		last := len(parts) - 1
		if width > 0 && used+widths[at]-len(gap) > width && len(parts[last]) > len(keys) {
			parts, used, last = append(parts, slices.Clone(keys)), keyWidth, last+1
		}
		parts[last] = append(parts[last], at)
		used += widths[at]
	}
	return parts
}

// split takes the columns that say the same in every measured row out of the table.
func (d *BenchData) split(all []benchColumn) (columns []benchColumn, common []string) {
	for _, c := range all {
		var values []string
		for i := range d.Lines {
			if v := c.cell(&d.Lines[i]); d.Lines[i].state() == "" && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if c.moves && len(values) == 1 {
			common = append(common, strings.ToLower(c.head)+" "+values[0])
			continue
		}
		columns = append(columns, c)
	}
	return columns, common
}

// without are the lines that have no figures, each reason once for a configuration.
func (d *BenchData) without() []*BenchLine {
	var out []*BenchLine
	seen := map[string]bool{}
	for i := range d.Lines {
		l := &d.Lines[i]
		key := l.Config.String() + " " + l.state()
		if l.state() == "" || seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, l)
	}
	return out
}

// writeWithout lists the rows that have no figures, with the reason.
func writeWithout(w io.Writer, lines []*BenchLine, width int) error {
	if len(lines) == 0 {
		return nil
	}
	t := table{head: []string{"TRANSPORT", "PORTS", "FRAMES", "NO FIGURES, SINCE"}}
	for _, l := range lines {
		t.add(plain(l.Config.Transport), plain(l.Config.Face), sizeWords(plain(l.Config.Size)), l.state())
	}
	if err := t.write(w, width); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// writeFacts says what the figures rest on.
func (d *BenchData) writeFacts(b *bytes.Buffer, width int) {
	facts := []string{
		fmt.Sprintf("%d of %d rounds in random order, seed %d, took %s; rates with two-sided 95 %% intervals over rounds; latency is one way, of all rounds together.",
			d.Run.Rounds, d.Run.Matrix.Repetitions, d.Run.Seed, elapsed(d.Run.Took.Round(time.Second))),
		fmt.Sprintf("The limit of the moment, measured before each row: %s. The generator alone: %s.", limitsOf(d.Trials), ceilingsOf(d.Trials)),
		"OF LIMIT is the rate by that of the bare ring; CORES is the CPU time of instruments, functions and switches; CYC/PKT is TSC ticks × cores by packets.",
	}
	for _, text := range append(facts, d.Warnings...) {
		if width > 0 {
			text = strings.Join(wrap(plain(text), max(width, 20)), "\n")
		}
		b.WriteString(text + "\n")
	}
	b.WriteString("\n")
}

// BenchPlan lists the rows of a run that has not been made. A width of 0 means no limit.
func BenchPlan(w io.Writer, run *BenchRun, width int) error {
	t := table{head: []string{"TRANSPORT", "PORTS", "RUNTIME", "FRAMES", "THROUGH", "PRIVILEGES", "STATE"}}
	for _, r := range run.Rows {
		l := BenchLine{Skipped: r.Skipped, Fix: r.Fix, Untried: r.Untried}
		state := "to be measured"
		switch {
		case r.Skipped != "":
			state = l.state()
		case r.Untried:
			state += ", for the first time on this host"
		}
		t.add(plain(r.Config.Transport), plain(r.Config.Face), plain(r.Config.Runtime), sizeWords(plain(r.Config.Size)), plain(r.Config.VNF), orNone(plain(r.Privileges)), state)
	}
	return t.write(w, width)
}

// SPDX-License-Identifier: Apache-2.0

// Package layout fits tables and prose into the width of a terminal.
package layout

import (
	"io"
	"strings"
	"unicode/utf8"
)

// gap separates columns.
const gap = "  "

// narrowest is the least width to which wrapping shrinks a column.
const narrowest = 8

// Table prints cells in columns. A cell keeps its leading blanks as an indent. A row
// with one cell in a table of several columns is a heading across all of them.
type Table struct {
	Head []string // none: the table has no header
	Rows [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the table. It wraps the widest cells until every line fits into
// width; a width of 0 means no limit.
func (t *Table) Write(w io.Writer, width int) error {
	lines := t.Rows
	if len(t.Head) > 0 {
		lines = append([][]string{t.Head}, lines...)
	}
	widths := t.widths(lines, utf8.RuneCountInString)
	if width > 0 {
		shrink(widths, t.widths(lines, longestWord), width)
	}
	var b strings.Builder
	for _, row := range lines {
		if isHeading(row, widths) {
			for _, line := range Wrap(row[0], width) {
				b.WriteString(line + "\n")
			}
			continue
		}
		writeRow(&b, row, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths are the maxima of measure over the cells of each column.
func (t *Table) widths(lines [][]string, measure func(string) int) []int {
	columns := 0
	for _, row := range lines {
		columns = max(columns, len(row))
	}
	widths := make([]int, columns)
	for _, row := range lines {
		if isHeading(row, widths) {
			continue
		}
		for i, cell := range row {
			widths[i] = max(widths[i], measure(cell))
		}
	}
	return widths
}

func isHeading(row []string, widths []int) bool { return len(row) == 1 && len(widths) > 1 }

// shrink narrows the widest column repeatedly until all fit. It breaks words only if
// nothing else helps, and stops at narrowest.
func shrink(widths, words []int, width int) {
	for _, breakWords := range []bool{false, true} {
		for total(widths) > width {
			widest := -1
			for i, w := range widths {
				room := w > narrowest && (breakWords || w > words[i])
				if room && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
}

// total is the length of a line.
func total(widths []int) int {
	sum := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

func writeRow(b *strings.Builder, row []string, widths []int) {
	cells := make([][]string, len(row))
	height := 1
	for i, cell := range row {
		cells[i] = Wrap(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var line strings.Builder
		for i := range cells {
			text := ""
			if y < len(cells[i]) {
				text = cells[i][y]
			}
			line.WriteString(text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + gap)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

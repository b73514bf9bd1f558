// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// gap separates columns.
const gap = "  "

// narrowest is the least width to which wrapping shrinks a column.
const narrowest = 8

// Grid is lines of cells in columns. A line with one cell in a grid of several columns
// is a heading across all of them.
type Grid struct {
	lines [][]string
	full  []int // width of each column without wrapping
	words []int // width of its longest word
}

// NewGrid measures the lines.
func NewGrid(lines [][]string) *Grid {
	columns := 0
	for _, line := range lines {
		columns = max(columns, len(line))
	}
	g := &Grid{lines: lines, full: make([]int, columns), words: make([]int, columns)}
	for _, line := range lines {
		if g.isHeading(line) {
			continue
		}
		for i, cell := range line {
			g.full[i] = max(g.full[i], utf8.RuneCountInString(cell))
			g.words[i] = max(g.words[i], longestWord(cell))
		}
	}
	return g
}

func (g *Grid) isHeading(line []string) bool { return len(line) == 1 && len(g.full) > 1 }

// All are the numbers of all columns.
func (g *Grid) All() []int {
	all := make([]int, len(g.full))
	for i := range all {
		all[i] = i
	}
	return all
}

// widthOf is the width of columns side by side.
func widthOf(widths, columns []int) int {
	total := len(gap) * (len(columns) - 1)
	for _, c := range columns {
		total += widths[c]
	}
	return total
}

// Parts splits the columns into as many tables as needed to fit into width without
// breaking words, each beginning with the key columns.
func (g *Grid) Parts(keys []int, width int) [][]int {
	all := g.All()
	if width <= 0 || len(keys) == 0 || widthOf(g.words, all) <= width {
		return [][]int{all}
	}
	widths := slices.Clone(g.full)
	for _, k := range keys {
		widths[k] = max(g.words[k], min(narrowest, g.full[k]))
	}
	parts := [][]int{slices.Clone(keys)}
	for _, c := range all {
		if slices.Contains(keys, c) {
			continue
		}
		last := len(parts) - 1
		if widthOf(widths, append(slices.Clone(parts[last]), c)) > width && len(parts[last]) > len(keys) {
			parts, last = append(parts, slices.Clone(keys)), last+1
		}
		parts[last] = append(parts[last], c)
	}
	return parts
}

// Write prints some columns. It wraps the widest until every line fits into width; a
// width of 0 means no limit.
func (g *Grid) Write(b *strings.Builder, columns []int, width int) {
	widths := slices.Clone(g.full)
	if width > 0 {
		g.shrink(widths, columns, width)
	}
	for _, line := range g.lines {
		if g.isHeading(line) {
			b.WriteString(strings.Join(Wrap(line[0], width), "\n") + "\n")
			continue
		}
		writeLine(b, line, columns, widths)
	}
}

// shrink narrows the widest column repeatedly until all fit. It breaks words only if
// nothing else helps, and stops at narrowest.
func (g *Grid) shrink(widths, columns []int, width int) {
	for _, breakWords := range []bool{false, true} {
		for widthOf(widths, columns) > width {
			widest := -1
			for _, c := range columns {
				room := widths[c] > narrowest && (breakWords || widths[c] > g.words[c])
				if room && (widest < 0 || widths[c] > widths[widest]) {
					widest = c
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
}

func writeLine(b *strings.Builder, line []string, columns, widths []int) {
	cells := make([][]string, len(columns))
	height := 1
	for i, c := range columns {
		if c < len(line) {
			cells[i] = Wrap(line[c], widths[c])
			height = max(height, len(cells[i]))
		}
	}
	for y := range height {
		var out strings.Builder
		for i, c := range columns {
			text := ""
			if y < len(cells[i]) {
				text = cells[i][y]
			}
			out.WriteString(text + strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text)) + gap)
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

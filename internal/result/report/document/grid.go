// SPDX-License-Identifier: Apache-2.0

package document

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// gap separates columns.
const gap = "  "

// least is the width below which no column is shrunk.
const least = 8

// grid is a table's text in columns; its first line is the head.
type grid struct {
	lines [][]string
	keys  []int
	full  []int // width of each column without wrapping
	words []int // width of the longest word
}

func gridOf(t *Table) *grid {
	g := &grid{lines: make([][]string, 1+len(t.Rows)), full: make([]int, len(t.Columns)), words: make([]int, len(t.Columns))}
	for i, c := range t.Columns {
		g.lines[0] = append(g.lines[0], Plain(c.terminalHead()))
		if c.Key {
			g.keys = append(g.keys, i)
		}
	}
	for i, r := range t.Rows {
		for _, c := range r.Cells {
			g.lines[i+1] = append(g.lines[i+1], Plain(c.Text))
		}
	}
	for _, line := range g.lines {
		for i, text := range line {
			g.full[i] = max(g.full[i], utf8.RuneCountInString(text))
			g.words[i] = max(g.words[i], longestWord(text))
		}
	}
	return g
}

// widthOf is the width of columns side by side.
func widthOf(widths []int, columns []int) int {
	total := len(gap) * (len(columns) - 1)
	for _, c := range columns {
		total += widths[c]
	}
	return total
}

// parts splits the columns into as many tables as needed to fit without breaking words,
// each beginning with the keys.
func (g *grid) parts(width int) [][]int {
	all := make([]int, len(g.full))
	for i := range all {
		all[i] = i
	}
	if width <= 0 || len(g.keys) == 0 || widthOf(g.words, all) <= width {
		return [][]int{all}
	}
	widths := slices.Clone(g.full)
	for _, k := range g.keys {
		widths[k] = max(g.words[k], min(least, g.full[k]))
	}
	parts := [][]int{slices.Clone(g.keys)}
	for _, c := range all {
		if slices.Contains(g.keys, c) {
			continue
		}
		last := len(parts) - 1
		if widthOf(widths, append(slices.Clone(parts[last]), c)) > width && len(parts[last]) > len(g.keys) {
			parts, last = append(parts, slices.Clone(g.keys)), last+1
		}
		parts[last] = append(parts[last], c)
	}
	return parts
}

// write prints some columns, and wraps the widest until a line fits.
func (g *grid) write(b *strings.Builder, columns []int, width int) {
	widths := slices.Clone(g.full)
	if width > 0 {
		g.shrink(widths, columns, width)
	}
	for _, line := range g.lines {
		writeLine(b, line, columns, widths)
	}
}

// shrink narrows the widest column repeatedly until all fit; it breaks words only if
// nothing else helps.
func (g *grid) shrink(widths []int, columns []int, width int) {
	for _, cutWords := range []bool{false, true} {
		for widthOf(widths, columns) > width {
			widest := -1
			for _, c := range columns {
				room := widths[c] > least && (cutWords || widths[c] > g.words[c])
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
		cells[i] = wrap(line[c], widths[c])
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var out strings.Builder
		for i, c := range columns {
			text := ""
			if y < len(cells[i]) {
				text = cells[i][y]
			}
			out.WriteString(text)
			if i < len(columns)-1 {
				out.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text)) + gap)
			}
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

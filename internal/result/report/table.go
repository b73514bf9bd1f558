// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// gap separates columns.
const gap = "  "

// narrowest is the least width that a column is shrunk to by wrapping.
const narrowest = 8

// table prints cells in columns, wrapping the widest until a line fits.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table; a width of 0 means no limit.
func (t *table) write(w io.Writer, width int) error {
	widths := make([]int, len(t.head))
	lines := append([][]string{t.head}, t.rows...)
	for _, row := range lines {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if width > 0 {
		t.shrink(widths, width)
	}
	var b strings.Builder
	for _, row := range lines {
		writeRow(&b, row, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shrink narrows the widest column, again and again, until all fit; words are
// cut only where nothing else helps, and no column below narrowest.
func (t *table) shrink(widths []int, width int) {
	words := make([]int, len(widths))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			for _, word := range strings.Fields(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
	}
	for _, cutWords := range []bool{false, true} {
		for sum(widths)+len(gap)*(len(widths)-1) > width {
			widest := -1
			for i, w := range widths {
				room := w > narrowest && (cutWords || w > words[i])
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

func sum(values []int) (total int) {
	for _, v := range values {
		total += v
	}
	return total
}

func writeRow(b *strings.Builder, row []string, widths []int) {
	cells := make([][]string, len(row))
	height := 1
	for i, cell := range row {
		cells[i] = wrap(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var line strings.Builder
		for i := range cells {
			text := ""
			if y < len(cells[i]) {
				text = cells[i][y]
			}
			line.WriteString(text)
			if i < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + gap)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// wrap breaks text at blanks into lines of at most width runes; a longer word
// is cut.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			head := string([]rune(word)[:width])
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// plain makes text from a file harmless on a terminal: control characters,
// which could move the cursor or hide text, become "?".
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return '?'
		}
		return r
	}, s)
}

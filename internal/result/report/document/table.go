// SPDX-License-Identifier: Apache-2.0

package document

import (
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/layout"
)

// Table is rows under columns.
type Table struct {
	Label   string // its content, for screen readers
	Columns []Column
	Rows    []Row
}

// Column is one column of a table.
type Column struct {
	Head  string
	Short string // the terminal's head, if Head is long
	Tip   string // explains the head on the page
	Tail  string // follows each cell on the page
	On    Medium
	Text  bool // holds words, which may be wrapped, not numbers
	Name  bool // Head is a name, whose case the terminal keeps
	Key   bool // repeated in each part of a table that is too wide for a terminal
	Moves bool // moves above the table if equal in every row
	Under bool // on the page, below the cell before it
}

func (c Column) terminalHead() string {
	switch {
	case c.Name:
		return c.Head
	case c.Short != "":
		return strings.ToUpper(c.Short)
	}
	return strings.ToUpper(c.Head)
}

// Row is one line of a table.
type Row struct {
	Cells   []Cell
	Note    string // below the row, on the page
	Marks   []string
	Remarks []string // further doubts
	Records []Ref
	Folded  *Folded
}

// Cell is one cell of a table.
type Cell struct {
	Text string
	Href string // "#…"
	Tone Tone   // a verdict; empty: none
}

// Text makes cells of texts.
func Text(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i] = Cell{Text: text}
	}
	return cells
}

// Marked reports whether any row has a mark.
func (t *Table) Marked() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return len(r.Marks)+len(r.Remarks) > 0 })
}

// On is the table for a medium: without other media's columns, and with columns that
// are equal in every row moved to a line above it.
func (t *Table) On(m Medium) (shown Table, common string) {
	shown = Table{Label: t.Label, Rows: slices.Clone(t.Rows)}
	var at []int
	var same []string
	for i, c := range t.Columns {
		switch {
		case c.On != Everywhere && c.On != m:
		case c.Moves && t.same(i):
			same = append(same, strings.ToLower(c.Head)+" "+t.Rows[0].Cells[i].Text)
		default:
			at = append(at, i)
			shown.Columns = append(shown.Columns, c)
		}
	}
	for i, r := range t.Rows {
		shown.Rows[i].Cells = nil
		for _, j := range at {
			shown.Rows[i].Cells = append(shown.Rows[i].Cells, r.Cells[j])
		}
	}
	return shown, strings.Join(same, ", ")
}

func (t *Table) same(column int) bool {
	for _, r := range t.Rows {
		if r.Cells[column].Text != t.Rows[0].Cells[column].Text {
			return false
		}
	}
	return len(t.Rows) > 0
}

// grid is the table's text, with the numbers of its key columns. The first line is the
// head.
func (t *Table) grid() (g *layout.Grid, keys []int) {
	lines := make([][]string, 1+len(t.Rows))
	for i, c := range t.Columns {
		lines[0] = append(lines[0], Plain(c.terminalHead()))
		if c.Key {
			keys = append(keys, i)
		}
	}
	for i, r := range t.Rows {
		for _, c := range r.Cells {
			lines[i+1] = append(lines[i+1], Plain(c.Text))
		}
	}
	return layout.NewGrid(lines), keys
}

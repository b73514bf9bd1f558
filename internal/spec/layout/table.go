// SPDX-License-Identifier: Apache-2.0

// Package layout fits tables and prose into the width of a terminal.
package layout

import (
	"io"
	"strings"
)

// Table prints cells in columns. A cell keeps its leading blanks as an indent. A row
// with one cell in a table of several columns is a heading across all of them.
type Table struct {
	Head []string // none: the table has no header
	Rows [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the table; see Grid.Write.
func (t *Table) Write(w io.Writer, width int) error {
	lines := t.Rows
	if len(t.Head) > 0 {
		lines = append([][]string{t.Head}, lines...)
	}
	var b strings.Builder
	g := NewGrid(lines)
	g.Write(&b, g.All(), width)
	_, err := io.WriteString(w, b.String())
	return err
}

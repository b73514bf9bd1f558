// SPDX-License-Identifier: Apache-2.0

package report

import "io"

// Table prints rows under a head in columns, as every table of this package: a
// width above 0 wraps the widest columns until a line fits. Cells are made
// harmless for a terminal.
func Table(w io.Writer, width int, head []string, rows [][]string) error {
	t := table{head: head}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		t.add(cells...)
	}
	return t.write(w, width)
}

// Plain makes text from a file harmless on a terminal.
func Plain(s string) string { return plain(s) }

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	"github.com/drayage/dray/internal/result/report/document"
)

// differences lists, on a terminal, how measured rows differ from their source. Rows
// that follow each other and differ alike share a line. (On the page it is below each
// row.)
func differences(lines []ExperimentLine) document.Block {
	b := document.Block{Title: "How rows differ from their source", On: document.Terminal}
	first, last := "", ""
	for _, l := range lines {
		if l.Measured == nil {
			continue
		}
		switch n := len(b.List) - 1; {
		case l.Differs == "":
		case l.Differs == last:
			b.List[n].Name = first + " … " + l.Title
		default:
			first = l.Title
			b.List = append(b.List, document.Fact{Name: first, Text: l.Differs})
		}
		last = l.Differs
	}
	return b
}

// withDiffers adds the mark of rows that differ from their source to a legend.
func withDiffers(legend []document.Fact, rows int) []document.Fact {
	if rows == 0 {
		return legend
	}
	legend = append(legend, document.Fact{Name: markDiffers, Mark: true,
		Text: "the source measured something else: the row's line says how they differ, and its ratio compares different things (" + countOf(rows, "row") + ")"})
	slices.SortFunc(legend, func(a, b document.Fact) int { return cmp.Compare(a.Name, b.Name) })
	return legend
}

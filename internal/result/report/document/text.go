// SPDX-License-Identifier: Apache-2.0

package document

import (
	"io"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/layout"
)

// Text writes the document for a terminal. A width of 0 means no limit.
func (d *Document) Text(w io.Writer, width int) error {
	t := textWriter{width: width}
	t.paragraph(d.Title + ": " + d.Headline)
	t.blank()
	if d.Banner != "" {
		t.paragraph(d.Banner)
		t.blank()
	}
	for _, s := range d.Sections {
		if s.On == Page {
			continue
		}
		if s.Head != "" {
			t.paragraph(s.Head)
			t.blank()
		}
		t.blocks(s.Blocks)
	}
	for _, line := range d.Closing {
		t.paragraph(line)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// Blocks writes blocks alone, for an incomplete document. It adds no line after the
// last.
func Blocks(w io.Writer, width int, blocks ...Block) error {
	t := textWriter{width: width}
	t.blocks(blocks)
	_, err := io.WriteString(w, strings.TrimSuffix(t.String(), "\n"))
	return err
}

// textWriter sanitises all text for a terminal, and wraps it to the width.
type textWriter struct {
	strings.Builder
	width int
}

func (t *textWriter) blank() { t.WriteString("\n") }

// narrowest is the smallest width of a paragraph.
const narrowest = 20

// paragraph writes lines of words.
func (t *textWriter) paragraph(text string) {
	text = Plain(text)
	if t.width > 0 {
		text = strings.Join(layout.Wrap(text, max(t.width, narrowest)), "\n")
	}
	t.WriteString(text + "\n")
}

func (t *textWriter) blocks(blocks []Block) {
	for _, b := range blocks {
		if b.On == Page {
			continue
		}
		for _, p := range b.Paragraphs {
			t.paragraph(p)
			t.blank()
		}
		if b.Table != nil {
			t.table(b.Table)
		}
		t.list(b)
		for _, n := range b.Notes {
			t.paragraph(n)
		}
		if len(b.Notes) > 0 {
			t.blank()
		}
		t.blocks(b.Columns)
	}
}

// list writes facts and points, indented if they have a title.
func (t *textWriter) list(b Block) {
	if len(b.List)+len(b.Points) == 0 {
		return
	}
	indent := ""
	if b.Title != "" {
		t.paragraph(b.Title + ":")
		indent = "  "
	}
	for _, f := range b.List {
		text := f.Name + ": " + f.Text
		if len(f.Marks) > 0 {
			text += " [" + strings.Join(f.Marks, ", ") + "]"
		}
		t.item(indent, text)
	}
	for _, p := range b.Points {
		t.item(indent, p)
	}
	t.blank()
}

// hang is the further indent of an item's continuation lines.
const hang = "  "

// item writes an item; its continuation lines are indented further.
func (t *textWriter) item(indent, text string) {
	lines := []string{Plain(text)}
	if t.width > 0 {
		lines = layout.Wrap(lines[0], max(t.width-len(indent)-len(hang), narrowest))
	}
	t.WriteString(indent + strings.Join(lines, "\n"+indent+hang) + "\n")
}

// table writes a table; one that is too wide is split, and each part has the keys.
func (t *textWriter) table(all *Table) {
	if len(all.Rows) == 0 {
		return
	}
	shown, common := all.On(Terminal)
	if common != "" {
		t.paragraph("All rows: " + common)
		t.blank()
	}
	if all.Marked() {
		shown.Columns = append(shown.Columns, Column{Head: "Marks", Text: true})
		for i, r := range shown.Rows {
			shown.Rows[i].Cells = append(r.Cells, Cell{Text: orNone(strings.Join(slices.Concat(r.Marks, r.Remarks), ", "))})
		}
	}
	g, keys := shown.grid()
	for _, part := range g.Parts(keys, t.width) {
		g.Write(&t.Builder, part, t.width)
		t.blank()
	}
}

func orNone(s string) string {
	if s == "" {
		return None
	}
	return s
}

// Plain makes text from a file harmless on a terminal.
func Plain(s string) string { return layout.Plain(s, "") }

// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drayage/dray/internal/result/report/plot"
)

var (
	//go:embed page.html
	pageText string
	//go:embed style.css
	styleText string
	//go:embed plot.css
	plotText string
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(styleText + plotText) },
	"table": pageTableOf, "capital": func(s string) string { return strings.TrimSuffix(Sentence(s), ".") }, "figure": pageFigureOf, "anchor": Anchor,
}).Parse(pageText))

// HTML writes one page that needs no network and no scripts. If it fails, it writes
// nothing.
func (d *Document) HTML(w io.Writer) error {
	var b bytes.Buffer
	if err := page.Execute(&b, d); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// pageTable is a table with its Under columns folded into others.
type pageTable struct {
	Label, Common string
	Head          []Column
	Rows          []pageRow
	Wide          bool // too many columns for a narrow page
}

type pageRow struct {
	Row
	Cells []pageCell
}

type pageCell struct {
	Cell
	Column Column
	Sub    []string
}

// Detailed reports whether a row has details below its cells.
func (r pageRow) Detailed() bool {
	return r.Note != "" || len(r.Marks)+len(r.Remarks)+len(r.Records) > 0 || r.Folded != nil
}

// manyColumns is the count from which type is smaller.
const manyColumns = 9

func pageTableOf(t *Table) pageTable {
	shown, common := t.On(Page)
	p := pageTable{Label: t.Label, Common: common}
	for _, c := range shown.Columns {
		if !c.Under {
			p.Head = append(p.Head, c)
		}
	}
	p.Wide = len(p.Head) >= manyColumns
	for _, r := range shown.Rows {
		row := pageRow{Row: r}
		for i, c := range shown.Columns {
			cell := r.Cells[i]
			if cell.Text != None {
				cell.Text += c.Tail
			}
			switch last := len(row.Cells) - 1; {
			case !c.Under:
				row.Cells = append(row.Cells, pageCell{Cell: cell, Column: c})
			case cell.Text != None && cell.Text != "":
				row.Cells[last].Sub = append(row.Cells[last].Sub, cell.Text)
			}
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

// pageFigure is a drawn figure, with files of its numbers and its drawing.
type pageFigure struct {
	Figure
	SVG       template.HTML
	File      string
	Data, Own template.URL
}

func pageFigureOf(f Figure) pageFigure {
	svg := f.Plot.SVG()
	var table bytes.Buffer
	w := csv.NewWriter(&table)
	_ = w.WriteAll(f.Plot.Data()) // a buffer never fails
	return pageFigure{
		Figure: f, SVG: svg, File: fileName(f.Title),
		Data: dataURL("text/csv", table.String()), Own: dataURL("image/svg+xml", plot.Alone(svg, plotStyle)),
	}
}

func dataURL(kind, text string) template.URL {
	return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(text)))
}

// fileName is a title in letters that any system accepts.
func fileName(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), "-")
}

var (
	colour   = regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`)
	variable = regexp.MustCompile(`var\(--([a-z0-9-]+)\)`)
)

// plotStyle is the style of an exported plot, in the light theme's colours: few
// programs that show SVG support variables.
var plotStyle = func() string {
	colours := map[string]string{}
	light, _, _ := strings.Cut(styleText, "@media")
	for _, m := range colour.FindAllStringSubmatch(light, -1) {
		colours[m[1]] = m[2]
	}
	return "svg{background:#fff;font-family:sans-serif}" + variable.ReplaceAllStringFunc(plotText, func(v string) string {
		return colours[variable.FindStringSubmatch(v)[1]]
	})
}()

// Sentence begins text with a capital and ends it with a full stop.
func Sentence(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if s == "" || n == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + strings.TrimSuffix(s[n:], ".") + "."
}

// SPDX-License-Identifier: Apache-2.0

// Package document is the model of every report: sections of tables, figures and notes,
// with renderers for a terminal, a page and programs.
package document

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/drayage/dray/internal/result/report/plot"
)

// None fills an empty cell.
const None = "–"

// Medium is where a part of a document appears.
type Medium int

// Media. The zero value is everywhere.
const (
	Everywhere Medium = iota
	Page
	Terminal
)

// Tone is a judgement on what a word describes; it selects a colour.
type Tone string

// Tones.
const (
	Neutral Tone = "none"
	Good    Tone = "met"
	Bad     Tone = "missed"
	Open    Tone = "open"
)

// Glyph accompanies a toned word, so that colour alone never carries the tone.
func (t Tone) Glyph() string {
	switch t {
	case Good:
		return "✓"
	case Bad:
		return "✕"
	case Open:
		return "?"
	}
	return None
}

// Document is a report.
type Document struct {
	Brand    string // kind of report, above the title
	Title    string
	Headline string
	Tone     Tone   // of the headline
	Banner   string // what a reader must know first, such as an interruption
	Facts    []Fact // of the page's head
	Sections []Section
	Records  []Record
	Seen     bool     // it shows what was seen at one time, and has no records
	Closing  []string // the terminal's last lines: path of the page, and next steps
	Data     any      // for programs; it has a schema field
}

// Section is a part of a document under one heading.
type Section struct {
	ID     string // of the page
	Title  string
	Over   string // behind the title, less prominent
	Head   string // the terminal's heading; empty: none
	Lead   string // one paragraph below the page's heading
	On     Medium
	Blocks []Block
}

// Block is one or more parts of a section, in this order.
type Block struct {
	Title      string // of the page
	On         Medium
	Paragraphs []string
	Drawing    template.HTML // of the page
	Figures    []Figure      // of the page
	Table      *Table
	List       []Fact
	Points     []string
	Spans      []Span   // of the page
	Notes      []string // small print
	Folded     *Folded  // of the page
	Columns    []Block  // side by side on the page
}

// Fact is a name with a value or explanation.
type Fact struct {
	Name, Text string
	Marks      []string
	Mark       bool // Name is a mark
}

// Span is a part of a longer time, in percent.
type Span struct {
	Name, Text   string
	Start, Share float64
}

// Folded is hidden until a reader opens it.
type Folded struct {
	Summary string
	Source  string // verbatim text
	Blocks  []Block
}

// Figure is a plot with the records behind it.
type Figure struct {
	Title   string
	Plot    plot.Plot
	Note    string
	Records []Ref
}

// Ref is a link to a record on the page.
type Ref struct{ Href, Text string }

// Record is the raw evidence, below all figures.
type Record struct {
	Number  int
	Title   string
	Result  string
	Warmup  bool
	Error   string
	Marks   []string
	Command string
	JSON    string
	Raw     string
}

// Anchor is where the page shows record number n, from 1.
func Anchor(n int) string { return fmt.Sprintf("rec-%d", n) }

// JSON writes the report for programs.
func (d *Document) JSON(w io.Writer) error { return JSON(w, d.Data) }

// JSON writes any value in the form of all reports.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write report as JSON: %w", err)
	}
	return nil
}

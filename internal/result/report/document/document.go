// SPDX-License-Identifier: Apache-2.0

// Package document is the model of every report: sections of tables, figures
// and notes, with renderers for a terminal, a page and programs.
package document

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/drayage/dray/internal/result/report/plot"
)

// None fills a cell that has nothing to say.
const None = "–"

// Medium is where a part of a document appears.
type Medium int

// Media. The zero value is everywhere.
const (
	Everywhere Medium = iota
	Page
	Terminal
)

// Tone is what a word says about the thing it describes; it selects a colour.
type Tone string

// Tones.
const (
	Neutral Tone = "none"
	Good    Tone = "met"
	Bad     Tone = "missed"
	Open    Tone = "open"
)

// Glyph stands beside a toned word, so that colour alone never carries it.
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
	Brand    string // what kind of report this is, above the title
	Title    string
	Headline string
	Tone     Tone   // of the headline
	Banner   string // what a reader must know first, such as an interruption
	Facts    []Fact // of the page's head
	Sections []Section
	Records  []Record
	Closing  []string // the terminal's last lines: where the page is, and what to do next
	Data     any      // what programs read; it has a schema field
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

// Block is one or more of the things a section is made of, in this order.
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

// Fact is a name and what there is to say about it.
type Fact struct {
	Name, Text string
	Marks      []string
	Mark       bool // Name is a mark
}

// Span is a part of a longer time, in per cent of it.
type Span struct {
	Name, Text   string
	Start, Share float64
}

// Folded is shown once a reader opens it.
type Folded struct {
	Summary string
	Source  string // verbatim text
	Blocks  []Block
}

// Figure is a plot with the records that it was made from.
type Figure struct {
	Title   string
	Plot    plot.Plot
	Note    string
	Records []Ref
}

// Ref is a link to a record on the page.
type Ref struct{ Href, Text string }

// Record is the evidence below all figures.
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

// JSON writes what programs read.
func (d *Document) JSON(w io.Writer) error { return JSON(w, d.Data) }

// JSON writes any value as every report does.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write report as JSON: %w", err)
	}
	return nil
}

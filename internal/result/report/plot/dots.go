// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"
)

// Row is a line of a dot plot: values on one axis, with their range.
type Row struct {
	Label string
	Text  string // beside the label
	// Low and High are the ends of a line; nil: none.
	Low, High *float64
	Dots      []Dot
}

// Dot is a value of a row.
type Dot struct {
	Value float64
	Kind  int    // its form and colour, 0 to 3
	Tip   string // tooltip of the dot
	Href  string // "#…": its record
}

// Dots is a plot of rows on one axis, logarithmic if values are far apart.
type Dots struct {
	ID, Title, Desc string
	Rows            []Row
	Limits          []Limit
	Legend          []string // names of the kinds of dots that need one
	Unit            string   // of the values, for Data
	Format          func(float64) string
}

// Data lists every dot, the ends of every line, and every limit.
func (p Dots) Data() [][]string {
	out := [][]string{{"row", "kind", "value (" + p.Unit + ")"}}
	for _, row := range p.Rows {
		for _, d := range row.Dots {
			kind := "value"
			if d.Kind < len(p.Legend) {
				kind = p.Legend[d.Kind]
			}
			out = append(out, []string{row.Label, kind, number(d.Value)})
		}
		out = append(out, interval(row.Label, row.Low, row.High)...)
	}
	return append(out, limitData(p.Limits)...)
}

const (
	dotsPitch, dotsDrop = 40.0, 24.0 // of a row, and from its top to its line
	dotsBottom          = 30.0
	dotsLine            = 15.0 // of a label with several
	dotsChars           = 58   // characters of a line and its text
	tickChar            = 6.4  // of a character of a tick, about
)

// lines wraps the label if it and the text beside it do not fit in one line; beside is
// the text's distance from the start of the last line.
func (r Row) lines() (lines []string, beside float64) {
	line := ""
	for _, word := range strings.Fields(r.Label) {
		if line != "" && runes(line)+1+runes(word) > dotsChars {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if r.Text != "" && runes(line)+2+runes(r.Text) > dotsChars {
		lines, line = append(lines, line), ""
	}
	if line != "" {
		beside = 10 + 6.7*float64(runes(line))
	}
	return append(lines, line), beside
}

func (r Row) height() float64 {
	lines, _ := r.lines()
	return dotsPitch + dotsLine*float64(len(lines)-1)
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// SVG draws the plot.
func (p Dots) SVG() template.HTML {
	top := 14.0
	if len(p.Legend) > 0 {
		top += legendRow
	}
	if len(p.Limits) > 0 {
		top += legendRow
	}
	height := 0.0
	for _, row := range p.Rows {
		height += row.height()
	}
	c := &Canvas{Width: width, Height: top + height + dotsBottom}
	x, floor := p.scale(), c.Height-dotsBottom
	for i, v := range thinned(x.ticks()) {
		c.Line("grid", x.at(v), top-4, x.at(v), floor)
		anchor := "middle"
		text, at := p.Format(v), x.at(v)
		switch half := tickChar / 2 * float64(runes(text)); {
		case i == 0 && at < barsLeft+10:
			anchor = "start"
		case at+half > width:
			anchor, at = "end", width
		}
		c.Text("tick", anchor, at, floor+labelDrop, text)
	}
	p.legend(c)
	for _, l := range p.Limits {
		p.limit(c, x, top, floor, l)
	}
	at := top
	for _, row := range p.Rows {
		p.row(c, x, at, row)
		at += row.height()
	}
	return c.Finish(p.ID, "plot", p.Title, p.Desc)
}

// mostTicks is how many tick texts fit.
const mostTicks = 7

// thinned removes every other tick until the rest fit.
func thinned(ticks []float64) []float64 {
	for len(ticks) > mostTicks {
		var kept []float64
		for i := 0; i < len(ticks); i += 2 {
			kept = append(kept, ticks[i])
		}
		ticks = kept
	}
	return ticks
}

func (p Dots) scale() scale {
	low, high := math.Inf(1), 0.0
	see := func(v float64) {
		if v > 0 {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	for _, row := range p.Rows {
		for _, d := range row.Dots {
			see(d.Value)
		}
	}
	for _, l := range p.Limits {
		see(l.Value)
	}
	// A lower bound near zero would stretch the axis without benefit.
	return rangeScale(low, high, barsLeft, width-barsRight)
}

func (p Dots) legend(c *Canvas) {
	at := barsLeft
	for i, name := range p.Legend {
		form(c, i, at+5, 10)
		c.Text("label", "start", at+14, 14, name)
		at += 14 + 6.6*float64(len([]rune(name))) + 18
	}
}

func (p Dots) limit(c *Canvas, x scale, top, floor float64, l Limit) {
	at := x.at(l.Value)
	anchor, shift := "start", 4.0
	if at > width/2 {
		anchor, shift = "end", -4.0
	}
	c.Link("", l.Text, func() {
		c.Line("limit", at, top-legendRow, at, floor)
		c.Text("limit-text", anchor, at+shift, top-8, l.Text)
	})
}

func (p Dots) row(c *Canvas, x scale, y float64, row Row) {
	lines, beside := row.lines()
	for _, line := range lines[:len(lines)-1] {
		c.Text("label", "start", barsLeft, y+13, line)
		y += dotsLine
	}
	mid := y + dotsDrop
	// Next to each other: at the far end a limit's line would cross the text.
	c.Text("label", "start", barsLeft, y+13, lines[len(lines)-1])
	c.Text("value", "start", barsLeft+beside, y+13, row.Text)
	c.Line("grid", barsLeft, mid, width-barsRight, mid)
	if row.Low != nil && row.High != nil {
		low, high := x.within(*row.Low), x.within(*row.High)
		c.Line("whisker", low, mid, high, mid)
		c.Line("whisker", low, mid-4, low, mid+4)
		c.Line("whisker", high, mid-4, high, mid+4)
	}
	for _, d := range row.Dots {
		c.Link(d.Href, d.Tip, func() { form(c, d.Kind, x.within(d.Value), mid) })
	}
}

// form draws a value in the shape of its kind, so that colours are not needed.
func form(c *Canvas, kind int, x, y float64) {
	switch kind % 4 {
	case 0:
		c.Circle("dot f0", x, y, dot+0.8)
	case 1:
		c.Rect("dot f1", x-3.5, y-3.5, 7, 7, 0)
	case 2:
		c.Path("dot f2", fmt.Sprintf("M%.1f %.1fl4.5 8h-9z", x, y-5))
	default:
		c.Path("dot f3", fmt.Sprintf("M%.1f %.1fl4.5 -4.5l4.5 4.5l-4.5 4.5z", x-4.5, y))
	}
}

// within is the coordinate of a value, limited to the scale's edge.
func (s scale) within(v float64) float64 {
	return s.at(math.Min(math.Max(v, s.low), s.high))
}

// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Series is a line through points, ordered by X.
type Series struct {
	Name   string
	Points []XY
}

// XY is a point of a series.
type XY struct {
	X, Y float64
	// Wanted is the requested X if X missed it; otherwise 0.
	Wanted float64
	Tip    string
	Href   string // "#…": its record
}

// Lines is a plot of one value against another of the same unit, with equal scales,
// logarithmic if values are far apart.
type Lines struct {
	ID, Title, Desc string
	Series          []Series
	XName, YName    string
	Equal           string // label of the line on which both are equal; empty: none
	Unit            string // of the values, for Data
	Format          func(float64) string
}

// Data is every point.
func (p Lines) Data() [][]string {
	out := [][]string{{"series", p.XName + " (" + p.Unit + ")", p.YName + " (" + p.Unit + ")", "wanted (" + p.Unit + ")"}}
	for _, s := range p.Series {
		for _, pt := range s.Points {
			wanted := ""
			if pt.Wanted > 0 {
				wanted = number(pt.Wanted)
			}
			out = append(out, []string{s.Name, number(pt.X), number(pt.Y), wanted})
		}
	}
	return out
}

// linesLeft leaves room for tick texts with a unit.
const linesLeft = 66.0

// SVG draws the plot.
func (p Lines) SVG() template.HTML {
	var entries []entry
	for i, s := range p.Series {
		entries = append(entries, entry{class: curveClass(i), text: s.Name})
	}
	if p.Equal != "" {
		entries = append(entries, entry{class: "limit", text: p.Equal})
	}
	top := legendRow*float64(placeEntries(entries)) + 12 + legendRow
	c := &Canvas{Width: width, Height: top + plotHeight + bottom}
	f := frame{x: p.scale(linesLeft, width-right-10), y: p.scale(top+plotHeight, top), floor: top + plotHeight}
	p.axes(c, f, top)
	if p.Equal != "" {
		c.Line("limit", f.x.from, f.y.from, f.x.to, f.y.to)
	}
	for i, s := range p.Series {
		p.series(c, f, i, s)
	}
	drawEntries(c, entries)
	return c.Finish(p.ID, "plot", p.Title, p.Desc)
}

func (p Lines) scale(from, to float64) scale {
	low, high := math.Inf(1), 0.0
	for _, s := range p.Series {
		for _, pt := range s.Points {
			for _, v := range []float64{pt.X, pt.Y, pt.Wanted} {
				if v > 0 {
					low, high = math.Min(low, v), math.Max(high, v)
				}
			}
		}
	}
	return rangeScale(low, high, from, to)
}

func (p Lines) axes(c *Canvas, f frame, top float64) {
	for _, v := range thinned(f.y.ticks()) {
		c.Line("grid", linesLeft, f.y.at(v), f.x.to, f.y.at(v))
		c.Text("tick", "end", linesLeft-7, f.y.at(v)+4, p.Format(v))
	}
	for _, v := range thinned(f.x.ticks()) {
		c.Line("axis", f.x.at(v), f.floor, f.x.at(v), f.floor+tickLength)
		c.Text("tick", "middle", f.x.at(v), f.floor+labelDrop, p.Format(v))
	}
	c.Line("axis", linesLeft, f.floor, f.x.to, f.floor)
	c.Text("tick", "start", 2, top-8, p.YName)
	c.Text("tick", "middle", (linesLeft+f.x.to)/2, f.floor+bottom-4, p.XName)
}

func (p Lines) series(c *Canvas, f frame, kind int, s Series) {
	var d strings.Builder
	for i, pt := range s.Points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", letter, f.x.within(pt.X), f.y.within(pt.Y))
	}
	c.Path(curveClass(kind), d.String())
	for _, pt := range s.Points {
		c.Link(pt.Href, pt.Tip, func() {
			x, y := f.x.within(pt.X), f.y.within(pt.Y)
			if pt.Wanted > 0 {
				at := f.x.within(pt.Wanted)
				c.Line("grid", x, y, at, y)
				c.Path("whisker", fmt.Sprintf("M%.1f %.1fl8 8m0 -8l-8 8", at-4, y-4))
			}
			form(c, kind, x, y)
		})
	}
}

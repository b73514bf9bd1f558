// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Curve is one distribution: a value for each percentile, ascending. A curve ends where
// the samples support no further quantile.
type Curve struct {
	Name   string
	Points []Point
	Href   string // "#…": its record
}

// Point is a quantile. Marked ones get a dot with a tooltip.
type Point struct {
	Percentile float64
	Value      float64
	Marked     bool
}

// Limit is a line for a requirement.
type Limit struct {
	Value      float64
	Percentile float64 // where it is judged
	Text       string
}

// Percentiles is a plot of values against percentiles on a log axis.
type Percentiles struct {
	ID, Title, Desc string
	Curves          []Curve
	Limits          []Limit
	From, To        float64 // the axis covers at least these values, so that plots compare; 0: the curves' own
	Unit            string  // of the values, for Data
	Format          func(float64) string

	legendRows int // minimum rows of the legend
}

// Data is every point and limit.
func (p Percentiles) Data() [][]string {
	out := [][]string{{"curve", "percentile", "value (" + p.Unit + ")"}}
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			out = append(out, []string{c.Name, number(pt.Percentile), number(pt.Value)})
		}
	}
	for _, l := range p.Limits {
		out = append(out, []string{l.Text, number(l.Percentile), number(l.Value)})
	}
	return out
}

// Align gives plots one scale and one height, so that they compare.
func Align(plots []Percentiles) {
	low, high, rows := math.Inf(1), 0.0, 0
	for _, p := range plots {
		_, n := p.legend()
		rows = max(rows, n)
		for _, c := range p.Curves {
			for _, pt := range c.Points {
				low, high = min(low, pt.Value), max(high, pt.Value)
			}
		}
	}
	for i := range plots {
		plots[i].From, plots[i].To, plots[i].legendRows = low, high, rows
	}
}

// The frame of a percentile plot.
const (
	width, plotHeight          = 440.0, 210.0 // of the plot, without legend and axis
	left, right, bottom        = 52.0, 14.0, 40.0
	tickLength, labelDrop, dot = 4.0, 16.0, 3.2
	legendRow, legendLine      = 19.0, 22.0
)

// frame is a plot's area on its canvas.
type frame struct {
	x, y  scale
	floor float64
}

// SVG draws the plot.
func (p Percentiles) SVG() template.HTML {
	entries, rows := p.legend()
	rows = max(rows, p.legendRows)
	top := legendRow*float64(rows) + 12
	c := &Canvas{Width: width, Height: top + plotHeight + bottom}
	f := frame{x: p.xScale(), y: p.yScale(top+plotHeight, top), floor: top + plotHeight}
	p.axes(c, f)
	for _, l := range p.Limits {
		p.limit(c, f, l)
	}
	for i, curve := range p.Curves {
		p.curve(c, f, i, curve)
	}
	drawEntries(c, entries)
	return c.Finish(p.ID, "plot", p.Title, p.Desc)
}

func (p Percentiles) yScale(from, to float64) scale {
	low, high := math.Inf(1), p.To
	if p.From > 0 {
		low = p.From
	}
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			low, high = math.Min(low, pt.Value), math.Max(high, pt.Value)
		}
	}
	for _, l := range p.Limits {
		low, high = math.Min(low, l.Value), math.Max(high, l.Value)
	}
	return rangeScale(low, high, from, to)
}

func (p Percentiles) xScale() scale {
	last := 2.0
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			last = math.Max(last, percentileAt(pt.Percentile))
		}
	}
	for _, l := range p.Limits {
		last = math.Max(last, percentileAt(l.Percentile))
	}
	return scale{low: 0, high: last * 1.04, from: left, to: width - right}
}

func (p Percentiles) axes(c *Canvas, f frame) {
	for _, v := range f.y.ticks() {
		c.Line("grid", left, f.y.at(v), width-right, f.y.at(v))
		c.Text("tick", "end", left-7, f.y.at(v)+4, p.Format(v))
	}
	tick := func(x float64, text string) {
		c.Line("axis", f.x.at(x), f.floor, f.x.at(x), f.floor+tickLength)
		c.Text("tick", "middle", f.x.at(x), f.floor+labelDrop, text)
	}
	tick(percentileAt(50), "50")
	for i := 0.0; i <= f.x.high; i++ {
		tick(i, nines(int(i)))
	}
	c.Line("axis", left, f.floor, width-right, f.floor)
	c.Text("tick", "middle", (left+width-right)/2, f.floor+bottom-4, "percentile")
}

// nines is 0, 90, 99, 99.9…
func nines(n int) string {
	switch n {
	case 0:
		return "0"
	case 1:
		return "90"
	case 2:
		return "99"
	}
	return "99." + strings.Repeat("9", n-2)
}

func (p Percentiles) limit(c *Canvas, f frame, l Limit) {
	c.Link("", l.Text, func() {
		x, y := f.x.at(percentileAt(l.Percentile)), f.y.at(l.Value)
		c.Line("limit", left, y, width-right, y)
		c.Path("limit-point", fmt.Sprintf("M%.1f %.1fl5 -5l5 5l-5 5z", x-5, y))
	})
}

func (p Percentiles) curve(c *Canvas, f frame, i int, curve Curve) {
	var d strings.Builder
	for j, pt := range curve.Points {
		letter := "L"
		if j == 0 {
			letter = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", letter, f.x.at(percentileAt(pt.Percentile)), f.y.at(pt.Value))
	}
	c.Path(curveClass(i), d.String())
	for _, pt := range curve.Points {
		if pt.Marked {
			c.Link(curve.Href, fmt.Sprintf("%s: p%g %s", curve.Name, pt.Percentile, p.Format(pt.Value)), func() {
				c.Circle(fmt.Sprintf("dot f%d", i%4), f.x.at(percentileAt(pt.Percentile)), f.y.at(pt.Value), dot)
			})
		}
	}
}

func curveClass(i int) string { return fmt.Sprintf("curve s%d", i%4) }

// entry is one line of the legend.
type entry struct {
	class, text string
	x, y        float64
}

// legend places the names of curves and limits in rows above the plot.
func (p Percentiles) legend() (entries []entry, rows int) {
	for i, c := range p.Curves {
		entries = append(entries, entry{class: curveClass(i), text: c.Name})
	}
	for _, l := range p.Limits {
		entries = append(entries, entry{class: "limit", text: l.Text})
	}
	return entries, placeEntries(entries)
}

// placeEntries places the entries of a legend in as few rows as possible.
func placeEntries(entries []entry) (rows int) {
	x := left
	rows = 1
	for i := range entries {
		e := &entries[i]
		wide := legendLine + 6 + 6.6*float64(len([]rune(e.text)))
		if x > left && x+wide > width {
			x, rows = left, rows+1
		}
		e.x, e.y = x, legendRow*float64(rows)-3
		x += wide + 14
	}
	return rows
}

func drawEntries(c *Canvas, entries []entry) {
	for _, e := range entries {
		c.Line(e.class, e.x, e.y-4, e.x+legendLine, e.y-4)
		c.Text("label", "start", e.x+legendLine+6, e.y, e.text)
	}
}

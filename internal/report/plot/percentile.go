// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Curve is one distribution: a value for each percentile, ascending. A curve
// ends where the samples support no further quantile.
type Curve struct {
	Name   string
	Points []Point
	Href   string // "#…": the record that it rests on
}

// Point is a quantile. Marked ones get a dot with a tooltip.
type Point struct {
	Percentile float64
	Value      float64
	Marked     bool
}

// Limit is a line that a requirement draws.
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
	Format          func(float64) string
}

// The frame of a percentile plot.
const (
	width, height              = 440.0, 280.0
	left, right, top, bottom   = 52.0, 14.0, 34.0, 40.0
	tickLength, labelDrop, dot = 4.0, 16.0, 3.2
)

// SVG draws the plot.
func (p Percentiles) SVG() template.HTML {
	c := &Canvas{Width: width, Height: height}
	y := p.yScale()
	x := p.xScale()
	p.axes(c, x, y)
	for _, l := range p.Limits {
		p.limit(c, x, y, l)
	}
	for i, curve := range p.Curves {
		p.curve(c, x, y, i, curve)
	}
	p.legend(c)
	return c.Finish(p.ID, "plot", p.Title, p.Desc)
}

func (p Percentiles) yScale() scale {
	low, high := math.Inf(1), 0.0
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			low, high = math.Min(low, pt.Value), math.Max(high, pt.Value)
		}
	}
	for _, l := range p.Limits {
		low, high = math.Min(low, l.Value), math.Max(high, l.Value)
	}
	return rangeScale(low, high, height-bottom, top)
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

func (p Percentiles) axes(c *Canvas, x, y scale) {
	for _, v := range y.ticks() {
		c.Line("grid", left, y.at(v), width-right, y.at(v))
		c.Text("tick", "end", left-7, y.at(v)+4, p.Format(v))
	}
	for i := 0.0; i <= x.high; i++ {
		c.Line("axis", x.at(i), height-bottom, x.at(i), height-bottom+tickLength)
		c.Text("tick", "middle", x.at(i), height-bottom+labelDrop, nines(int(i)))
	}
	c.Text("tick", "middle", x.at(math.Log10(2)), height-bottom+labelDrop, "50")
	c.Line("axis", x.at(math.Log10(2)), height-bottom, x.at(math.Log10(2)), height-bottom+tickLength)
	c.Line("axis", left, height-bottom, width-right, height-bottom)
	c.Text("tick", "middle", (left+width-right)/2, height-4, "percentile")
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

func (p Percentiles) limit(c *Canvas, x, y scale, l Limit) {
	at := y.at(l.Value)
	c.Link("", l.Text, func() {
		c.Line("limit", left, at, width-right, at)
		px := x.at(percentileAt(l.Percentile))
		c.Path("limit-point", fmt.Sprintf("M%.1f %.1fl5 -5l5 5l-5 5z", px-5, at))
		drop := -8.0
		if at < top+16 {
			drop = 17
		}
		c.Text("limit-text", "start", left+6, at+drop, l.Text)
	})
}

func (p Percentiles) curve(c *Canvas, x, y scale, i int, curve Curve) {
	var d strings.Builder
	for j, pt := range curve.Points {
		letter := "L"
		if j == 0 {
			letter = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", letter, x.at(percentileAt(pt.Percentile)), y.at(pt.Value))
	}
	c.Path(fmt.Sprintf("curve s%d", i%4), d.String())
	for _, pt := range curve.Points {
		if pt.Marked {
			c.Link(curve.Href, fmt.Sprintf("%s: p%g %s", curve.Name, pt.Percentile, p.Format(pt.Value)), func() {
				c.Circle(fmt.Sprintf("dot f%d", i%4), x.at(percentileAt(pt.Percentile)), y.at(pt.Value), dot)
			})
		}
	}
}

func (p Percentiles) legend(c *Canvas) {
	x := left
	for i, curve := range p.Curves {
		c.Line(fmt.Sprintf("curve s%d", i%4), x, 14, x+22, 14)
		c.Text("label", "start", x+28, 18, curve.Name)
		x += 44 + 6.6*float64(len([]rune(curve.Name)))
	}
}

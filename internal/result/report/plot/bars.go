// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"html/template"
	"math"
)

// Bar is a mean with its interval and the underlying values.
type Bar struct {
	Label     string
	Text      string // the mean and interval in words
	Mean      float64
	Low, High *float64 // nil: no interval
	Values    []Value
}

// Value is one trial.
type Value struct {
	Value float64
	Tip   string
	Href  string // "#…": its record
}

// Bars is a plot of horizontal bars from zero.
type Bars struct {
	ID, Title, Desc string
	Bars            []Bar
	Limits          []Limit
	Unit            string // of the values, for Data
	Format          func(float64) string
}

// Data lists every mean with its interval, every value and every limit.
func (b Bars) Data() [][]string {
	out := [][]string{{"bar", "kind", "value (" + b.Unit + ")"}}
	for _, bar := range b.Bars {
		out = append(out, []string{bar.Label, "mean", number(bar.Mean)})
		out = append(out, interval(bar.Label, bar.Low, bar.High)...)
		for _, v := range bar.Values {
			out = append(out, []string{bar.Label, "trial", number(v.Value)})
		}
	}
	return append(out, limitData(b.Limits)...)
}

const (
	barsLeft, barsRight = 22.0, 26.0
	barsTop, barsBottom = 30.0, 30.0
	barPitch, barHeight = 56.0, 14.0
	barDrop             = 22.0 // from the top of a row to its bar
)

// SVG draws the plot.
func (b Bars) SVG() template.HTML {
	c := &Canvas{Width: width, Height: barsTop + barPitch*float64(len(b.Bars)) + barsBottom}
	x := b.scale()
	floor := c.Height - barsBottom
	for _, v := range x.ticks() {
		c.Line("grid", x.at(v), barsTop-4, x.at(v), floor)
		c.Text("tick", "middle", x.at(v), floor+labelDrop, b.Format(v))
	}
	for i, bar := range b.Bars {
		b.bar(c, x, barsTop+barPitch*float64(i), bar)
	}
	c.Line("axis", x.at(0), barsTop-4, x.at(0), floor)
	for _, l := range b.Limits {
		b.limit(c, x, floor, l)
	}
	for i, bar := range b.Bars {
		y := barsTop + barPitch*float64(i) + 14
		c.Text("label", "start", x.at(0)+4, y, bar.Label)
		c.Text("value", "end", width-barsRight, y, bar.Text)
	}
	return c.Finish(b.ID, "plot", b.Title, b.Desc)
}

func (b Bars) scale() scale {
	high := 0.0
	for _, bar := range b.Bars {
		high = math.Max(high, bar.Mean)
		if bar.High != nil {
			high = math.Max(high, *bar.High)
		}
		for _, v := range bar.Values {
			high = math.Max(high, v.Value)
		}
	}
	for _, l := range b.Limits {
		high = math.Max(high, l.Value)
	}
	return zeroScale(high, barsLeft, width-barsRight)
}

func (b Bars) bar(c *Canvas, x scale, y float64, bar Bar) {
	y += barDrop
	c.Rect("bar", x.at(0), y, x.at(bar.Mean)-x.at(0), barHeight, 1)
	mid := y + barHeight/2
	if bar.Low != nil && bar.High != nil {
		low, high := x.at(*bar.Low), x.at(*bar.High)
		c.Line("whisker", low, mid, high, mid)
		c.Line("whisker", low, mid-5, low, mid+5)
		c.Line("whisker", high, mid-5, high, mid+5)
	}
	for _, v := range bar.Values {
		c.Link(v.Href, v.Tip, func() { c.Circle("trial", x.at(v.Value), y+barHeight+8, dot) })
	}
}

func (b Bars) limit(c *Canvas, x scale, floor float64, l Limit) {
	at := x.at(l.Value)
	anchor, shift := "start", 4.0
	if at > width/2 {
		anchor, shift = "end", -4.0
	}
	c.Link("", l.Text, func() {
		c.Line("limit", at, barsTop-14, at, floor)
		c.Text("limit-text", anchor, at+shift, barsTop-10, l.Text)
	})
}

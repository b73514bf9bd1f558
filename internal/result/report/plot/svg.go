// SPDX-License-Identifier: Apache-2.0

// Package plot draws figures as SVG with colours from the page's style sheet. It
// escapes all text.
package plot

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// Canvas collects SVG elements in a coordinate system of Width × Height.
type Canvas struct {
	Width, Height float64
	body          strings.Builder
}

// largest limits the scale of a drawing on a wide page.
const largest = 1.35

// Finish closes the drawing. Title and description are for screen readers; id must be
// unique on the page and safe in an attribute.
func (c *Canvas) Finish(id, class, title, desc string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg class="%s" style="max-width:%.0fpx" viewBox="0 0 %g %g" role="group" aria-labelledby="%s-t %s-d">`+
			`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`,
		esc(class), c.Width*largest, c.Width, c.Height, esc(id), esc(id), esc(id), esc(title), esc(id), esc(desc), c.body.String()))
}

// Line draws a straight line.
func (c *Canvas) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.body, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, esc(class), x1, y1, x2, y2)
}

// Rect draws a box with rounded corners.
func (c *Canvas) Rect(class string, x, y, w, h, r float64) {
	fmt.Fprintf(&c.body, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%g"/>`, esc(class), x, y, w, h, r)
}

// Circle draws a dot.
func (c *Canvas) Circle(class string, x, y, r float64) {
	fmt.Fprintf(&c.body, `<circle class="%s" cx="%.1f" cy="%.1f" r="%g"/>`, esc(class), x, y, r)
}

// Path draws a path given in SVG's own notation, made of numbers only.
func (c *Canvas) Path(class, d string) {
	fmt.Fprintf(&c.body, `<path class="%s" d="%s"/>`, esc(class), esc(d))
}

// Text writes at a point; anchor is "start", "middle" or "end".
func (c *Canvas) Text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&c.body, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, esc(class), esc(anchor), x, y, esc(text))
}

// Link makes draw's elements a link with a tooltip; an empty href adds only the
// tooltip.
func (c *Canvas) Link(href, tip string, draw func()) {
	open, end := `<g>`, `</g>`
	if strings.HasPrefix(href, "#") {
		open, end = fmt.Sprintf(`<a href="%s">`, esc(href)), `</a>`
	}
	fmt.Fprintf(&c.body, `%s<title>%s</title>`, open, esc(tip))
	draw()
	c.body.WriteString(end)
}

func esc(s string) string { return html.EscapeString(s) }

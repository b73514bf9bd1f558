// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"html/template"
	"regexp"
	"strconv"
	"strings"
)

// Plot is a figure: its drawing and its numbers.
type Plot interface {
	SVG() template.HTML
	// Data is a table of the plot's numbers, its head first.
	Data() [][]string
}

var anchor = regexp.MustCompile(`<a href="[^"]*">`)

// Alone makes a page's drawing a standalone file: with a style sheet, and without links
// into the page.
func Alone(svg template.HTML, style string) string {
	s := strings.ReplaceAll(anchor.ReplaceAllString(string(svg), "<g>"), "</a>", "</g>")
	s = strings.Replace(s, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	return strings.Replace(s, ">", "><style>"+style+"</style>", 1)
}

// number prints a value in full.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// interval is the ends of an interval, if there is one.
func interval(label string, low, high *float64) [][]string {
	if low == nil || high == nil {
		return nil
	}
	return [][]string{{label, "95 % from", number(*low)}, {label, "95 % to", number(*high)}}
}

func limitData(limits []Limit) [][]string {
	var out [][]string
	for _, l := range limits {
		out = append(out, []string{l.Text, "limit", number(l.Value)})
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"strings"
	"testing"
)

func TestLinesDrawWhatTheyAreGiven(t *testing.T) {
	p := Lines{ID: "l", Title: "T", Desc: "D", XName: "sent", YName: "received", Equal: "all", Format: plain, Series: []Series{
		{Name: "a", Points: []XY{{X: 100, Y: 100, Tip: "first", Href: "#rec-1"}, {X: 5000, Y: 0, Wanted: 8000, Tip: "last"}}},
	}}
	svg := string(p.SVG())
	finite(t, svg)
	for _, want := range []string{`href="#rec-1"`, "first", "last", "sent", "received", "all", `<title id="l-t">T</title>`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the plot", want)
		}
	}
	if n := strings.Count(svg, `class="whisker"`); n != 1 {
		t.Errorf("%d crosses, want one: the first point is where it was to be", n)
	}
	finite(t, string(Lines{Format: plain}.SVG()))
	finite(t, string(Lines{Format: plain, Series: []Series{{Points: []XY{{}}}, {}}}.SVG()))
}

// A long label is wrapped, and shifts what is below; the text is next to its last line.
func TestLabelsAreBroken(t *testing.T) {
	short, long := Row{Label: "a row", Text: "× 2"}, Row{Label: strings.Repeat("a long label ", 10), Text: "× 2"}
	if lines, beside := short.lines(); len(lines) != 1 || beside <= 0 {
		t.Errorf("a short label has %d lines, its text at %g", len(lines), beside)
	}
	lines, _ := long.lines()
	for _, line := range lines {
		if runes(line) > dotsChars {
			t.Errorf("a line of %d characters: %q", runes(line), line)
		}
	}
	if strings.Join(lines, " ") != strings.TrimSpace(long.Label) || long.height() <= short.height() {
		t.Errorf("%q of %g, a short one has %g", lines, long.height(), short.height())
	}
	full := Row{Label: strings.Repeat("x", dotsChars-1)}
	if lines, _ := full.lines(); len(lines) != 1 {
		t.Errorf("a label that fits, with no text, has %d lines", len(lines))
	}
	full.Text = "× 2"
	if lines, beside := full.lines(); len(lines) != 2 || lines[1] != "" || beside != 0 {
		t.Errorf("a label without room for its text: %q, text at %g", lines, beside)
	}
}

// Plots to be compared share one scale, whatever their own range.
func TestPercentilesCoverWhatTheyAreTold(t *testing.T) {
	p := Percentiles{Format: plain, Curves: []Curve{{Points: []Point{{0, 50, true}, {50, 60, true}}}}}
	own := p.yScale(0, 1)
	p.From, p.To = 10, 9000
	if got := p.yScale(0, 1); got.low > 10 || got.high < 9000 || own.high >= 9000 {
		t.Errorf("%+v, its own is %+v", got, own)
	}
}

// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func plain(v float64) string { return fmt.Sprintf("%g", v) }

func TestScales(t *testing.T) {
	lin := rangeScale(10, 40, 0, 100)
	if lin.log || lin.at(0) != 0 || lin.high < 40 {
		t.Errorf("a narrow range gets %+v, want a linear scale from 0", lin)
	}
	log := rangeScale(10, 10_000, 300, 0)
	if !log.log || log.at(10) >= 300 || log.at(10_000) <= 0 {
		t.Errorf("a wide range gets %+v, want a log scale with room", log)
	}
	if a, b := log.at(100)-log.at(10), log.at(1000)-log.at(100); math.Abs(a-b) > 1e-9 {
		t.Errorf("decades of %g and %g differ", a, b)
	}
	if got := log.at(0); math.IsInf(got, 0) || math.IsNaN(got) {
		t.Errorf("0 on a log scale is at %g", got)
	}
}

func TestTicksAreRoundAndWithin(t *testing.T) {
	for _, high := range []float64{0, 1e-3, 7, 123, 9.4e9, 1.6e10} {
		s := zeroScale(high, 0, 1)
		ticks := s.ticks()
		if len(ticks) < 3 || len(ticks) > 9 || ticks[0] != 0 || ticks[len(ticks)-1] > s.high*1.0001 || s.high < high {
			t.Errorf("up to %g: ticks %v on %+v", high, ticks, s)
		}
	}
	for _, low := range []float64{1, 3, 47e3} {
		for _, ratio := range []float64{8, 100, 1e4, 1e6} {
			s := rangeScale(low, low*ratio, 0, 1)
			if n := len(s.ticks()); n < 2 || n > 10 {
				t.Errorf("%g to %g: ticks %v", low, low*ratio, s.ticks())
			}
		}
	}
}

func TestPercentileAxis(t *testing.T) {
	for p, want := range map[float64]float64{0: 0, 90: 1, 99: 2, 99.9: 3, 99.99: 4} {
		if got := percentileAt(p); math.Abs(got-want) > 1e-6 {
			t.Errorf("p%g is at %g, want %g", p, got, want)
		}
	}
	if v := percentileAt(100); math.IsInf(v, 0) {
		t.Error("p100 has no place")
	}
	for n, want := range map[int]string{0: "0", 1: "90", 2: "99", 3: "99.9", 5: "99.999"} {
		if got := nines(n); got != want {
			t.Errorf("nines(%d) = %q, want %q", n, got, want)
		}
	}
}

// numbers finds every coordinate of a drawing.
var numbers = regexp.MustCompile(`\s(?:x|y|x1|x2|y1|y2|cx|cy|width|height)="([^"]*)"`)

// finite reports numbers that no renderer accepts.
func finite(t *testing.T, svg string) {
	t.Helper()
	for _, m := range numbers.FindAllStringSubmatch(svg, -1) {
		if v, err := strconv.ParseFloat(m[1], 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("coordinate %q", m[0])
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("a path holds no number: %s", svg)
	}
}

func TestPlotsDrawWhatTheyAreGiven(t *testing.T) {
	p := Percentiles{
		ID: "p", Title: "T", Desc: "D", Format: plain,
		Curves: []Curve{{Name: "a", Href: "#rec-1", Points: []Point{{0, 20, false}, {50, 30, true}, {99, 400, true}}}},
		Limits: []Limit{{Value: 1000, Percentile: 99.9, Text: "budget"}},
	}
	svg := string(p.SVG())
	finite(t, svg)
	for _, want := range []string{`href="#rec-1"`, "p99 400", "budget", "99.9", `<title id="p-t">T</title>`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the percentile plot", want)
		}
	}
	low, high := 8.0, 12.0
	b := Bars{
		ID: "b", Title: "T", Desc: "D", Format: plain, Limits: []Limit{{Value: 40, Text: "at least 40"}},
		Bars: []Bar{{Label: "l", Text: "10", Mean: 10, Low: &low, High: &high, Values: []Value{{Value: 9, Tip: "nine", Href: "#rec-2"}}}, {Label: "one", Text: "0"}},
	}
	svg = string(b.SVG())
	finite(t, svg)
	if n := strings.Count(svg, `class="whisker"`); n != 3 {
		t.Errorf("%d strokes of intervals, want three: the second bar has no interval", n)
	}
	for _, want := range []string{`href="#rec-2"`, "nine", "at least 40"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the bar plot", want)
		}
	}
}

func TestDegenerateDataStillDraws(t *testing.T) {
	for _, points := range [][]Point{nil, {{0, 0, true}}, {{0, 5, true}, {50, 5, true}}} {
		finite(t, string(Percentiles{ID: "p", Format: plain, Curves: []Curve{{Points: points}}}.SVG()))
	}
	finite(t, string(Bars{ID: "b", Format: plain, Bars: []Bar{{}}}.SVG()))
	finite(t, string(Bars{ID: "b", Format: plain}.SVG()))
}

func TestTextIsEscaped(t *testing.T) {
	const evil = `"><script>x</script>`
	c := &Canvas{Width: 1, Height: 1}
	c.Text(evil, evil, 0, 0, evil)
	c.Link(evil, evil, func() { c.Line(evil, 0, 0, 1, 1) })
	c.Link("#"+evil, evil, func() { c.Path(evil, evil) })
	c.Link("javascript:alert(1)", "t", func() {})
	if svg := string(c.Finish(evil, evil, evil, evil)); strings.Contains(svg, "<script") || strings.Contains(svg, "javascript:") {
		t.Errorf("markup or a script gets through: %s", svg)
	}
}

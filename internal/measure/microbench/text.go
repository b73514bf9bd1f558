// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drayage/dray/internal/spec/layout"
)

// width is the width of the terminal that tables fit.
const width = 80

// maxNameWidth bounds the width of the name column.
const maxNameWidth = 58

// Print prints every group that has no table of its own, with its targets.
func (s *Figures) Print(w io.Writer) {
	fmt.Fprint(w, wrap("", "", "medians with their 95 % interval; ratios: the geometric mean over rounds with its 95 % interval; marks of this run: "+s.markText()))
	var done []string
	for _, f := range s.list {
		if f.hidden || slices.Contains(done, f.Group) {
			continue
		}
		done = append(done, f.Group)
		fmt.Fprint(w, "\n", wrap("", "", f.Group))
		for _, g := range s.list {
			if g.Group == f.Group {
				fmt.Fprint(w, g.text(s.nameWidth(f.Group)))
			}
		}
	}
}

// nameWidth is the width of a group's name column.
func (s *Figures) nameWidth(group string) int {
	n := 0
	for _, f := range s.list {
		if f.Group == group {
			n = max(n, utf8.RuneCountInString(f.Name))
		}
	}
	return min(n, maxNameWidth)
}

func (s *Figures) markText() string {
	if len(s.marks) == 0 {
		return "none"
	}
	return strings.Join(s.marks, "; ")
}

// text is a figure's row: name and value columns, then the ratio and the marks.
func (f *Figure) text(nameWidth int) string {
	if !f.Measured() {
		return row(nameWidth, f.Name, "not measured: "+f.whyMissing())
	}
	e := f.estimate()
	value := format(e.Value, f.Unit)
	if e.CI.Low != e.CI.High {
		value += fmt.Sprintf(" [%s, %s]", short(e.CI.Low/scale(f.Unit)), short(e.CI.High/scale(f.Unit)))
	}
	text := row(nameWidth, f.Name, value)
	if r, ok := f.to(f.limit); ok {
		text += wrap("      ", "        ", r.text()+" of: "+f.limit.Name)
	}
	if len(f.marks) > 0 {
		text += wrap("      ", "        ", "mark: "+strings.Join(f.marks, "; "))
	}
	return text
}

func (r ratio) text() string {
	if r.low == r.high {
		return short(r.value)
	}
	return fmt.Sprintf("%s [%s, %s]", short(r.value), short(r.low), short(r.high))
}

// PrintTargets prints each target, with the reasons for missed ones.
func (s *Figures) PrintTargets(w io.Writer) {
	var text strings.Builder
	for _, f := range s.list {
		if len(f.targets) == 0 {
			continue
		}
		text.WriteString(wrap("  ", "    ", f.Name))
		for _, t := range f.targets {
			text.WriteString(wrap("    ", "      ", f.judged(t)))
		}
		for _, cause := range f.causes {
			text.WriteString(wrap("      ", "        ", cause))
		}
	}
	if text.Len() > 0 {
		fmt.Fprint(w, "\n", wrap("", "", "targets; marks of this run: "+s.markText()), text.String())
	}
}

// judged is a target's line.
func (f *Figure) judged(t target) string {
	r, ok := f.to(t.of)
	switch {
	case !f.Measured():
		return fmt.Sprintf("%s of %s; not measured: %s", t.bound(), t.what, f.whyMissing())
	case !ok:
		return fmt.Sprintf("%s of %s: there is nothing to compare with", t.bound(), t.what)
	}
	return fmt.Sprintf("%s of %s: %.2f [%.2f, %.2f]: %s", t.bound(), t.what, r.value, r.low, r.high, t.outcome(f.rounds(), r))
}

// row is a name and a text next to it, or below it if there is no room.
func row(nameWidth int, name, text string) string {
	line := fmt.Sprintf("  %-*s %s\n", nameWidth, name, text)
	if utf8.RuneCountInString(line) <= width+1 {
		return line
	}
	return wrap("  ", "    ", name) + wrap("        ", "        ", strings.TrimSpace(text))
}

// wrap breaks text into lines that fit the terminal.
func wrap(first, next, text string) string {
	return strings.Join(layout.Hang(first, next, text, width), "\n") + "\n"
}

// scale is the divisor for printing a unit.
func scale(unit string) float64 {
	if unit == "packets/s" {
		return 1e6
	}
	return 1
}

// format is a value with its unit, aligned.
func format(value float64, unit string) string {
	if unit == "packets/s" {
		return fmt.Sprintf("%9.3f M/s", value/1e6)
	}
	digits := 0
	if value < 10 && value != math.Floor(value) {
		digits = 2
	}
	return fmt.Sprintf("%9.*f %s", digits, value, unit)
}

// short is a number with three digits, or with all integer digits.
func short(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
